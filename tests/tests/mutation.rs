//! An unknown key is refused at every place.
#![forbid(unsafe_code)]

use camino::Utf8Path;
use jobc_compiler::diagnostic::Severity;
use jobc_compiler::source::Source;
use jobc_schema::Pointer;
use jobc_tests::compile::{Arguments, Case};
use jobc_tests::disk::DiskFiles;
use jobc_tests::{examples, job_file};
use serde_json::Value;

/// Not a name of anything: it holds blanks, so that maps with keys of the user's own refuse it too.
const KEY: &str = "no such key";

/// Maps whose keys belong to another system, which takes any.
const FREE: [&str; 5] = ["annotations", "labels", "node_selector", "options", "with"];

/// The places of objects.
fn objects(value: &Value, at: &Pointer, found: &mut Vec<Pointer>) {
    match value {
        Value::Object(entries) => {
            found.push(at.clone());
            entries.iter().for_each(|(key, value)| objects(value, &at.key(key), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, value)| objects(value, &at.index(i), found));
        }
        _ => {}
    }
}

fn read(path: &Utf8Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Compiles the two files as JSON and says whether an error names the key.
fn is_refused(directory: &Utf8Path, job: &Value, targets: Option<&Value>) -> bool {
    let source = |name: &str, value: &Value| Source::new(name, value.to_string());
    let files = DiskFiles(directory.to_owned());
    let compiled = Case {
        job: source("job.json", job),
        targets: targets.map(|value| source("targets.json", value)),
        params: vec![],
        arguments: Arguments::default(),
        files: &files,
    }
    .compile();
    compiled.findings.iter().any(|d| d.severity == Severity::Error && d.message.contains(KEY))
}

fn insert(value: &Value, at: &Pointer) -> Value {
    let mut value = value.clone();
    let object =
        value.pointer_mut(at.as_str()).and_then(Value::as_object_mut).expect("an object stands there");
    object.insert(KEY.to_owned(), Value::Bool(true));
    value
}

#[test]
fn an_unknown_key_is_refused_in_every_object() {
    let (mut tried, mut accepted) = (0, Vec::new());
    for directory in examples() {
        let job_path = job_file(&directory).expect("an example has a job file");
        let targets_path = directory.join("targets.yaml");
        let job = read(&job_path);
        let targets = targets_path.is_file().then(|| read(&targets_path));
        assert!(!is_refused(&directory, &job, targets.as_ref()), "{directory} is refused as it is");
        let mut try_at = |value: &Value, path: &Utf8Path, refused: &dyn Fn(&Value) -> bool| {
            let mut places = Vec::new();
            objects(value, &Pointer::ROOT, &mut places);
            for at in places {
                let last = at.segments().last();
                if last.is_some_and(|last| FREE.contains(&last.as_ref())) {
                    continue;
                }
                tried += 1;
                if !refused(&insert(value, &at)) {
                    accepted.push(format!("{path}#{}", at.as_str()));
                }
            }
        };
        try_at(&job, &job_path, &|job| is_refused(&directory, job, targets.as_ref()));
        if let Some(targets) = &targets {
            try_at(targets, &targets_path, &|targets| is_refused(&directory, &job, Some(targets)));
        }
    }
    assert!(tried > 100, "only {tried} objects were found");
    assert!(accepted.is_empty(), "accepted in:\n{}", accepted.join("\n"));
}
