//! The schemas as an editor sees them: every block it offers compiles, and catalogues name the published addresses.
#![forbid(unsafe_code)]

use jobc_compiler::diagnostic::Severity;
use jobc_compiler::files::MemoryFiles;
use jobc_compiler::source::Source;
use jobc_schema::{JOB_SCHEMA, TARGETS_SCHEMA};
use jobc_tests::compile::{Arguments, Case};
use jobc_tests::workspace;
use serde_json::{Map, Value, json};

/// A block of a schema and a place of a document where an editor offers it.
struct Offer<'a> {
    /// The steps to the place; names of the user's are `train` for a role and `lab` elsewhere.
    place: Vec<String>,
    label: &'a str,
    body: &'a Value,
}

/// Every block at every place it can be offered at.
fn offers(schema: &Value) -> Vec<Offer<'_>> {
    let mut found = vec![];
    collect(schema, schema, &mut vec![], &mut found);
    found
}

fn collect<'a>(root: &'a Value, node: &'a Value, place: &mut Vec<String>, found: &mut Vec<Offer<'a>>) {
    for snippet in node["defaultSnippets"].as_array().into_iter().flatten() {
        let label = snippet["label"].as_str().expect("a label");
        found.push(Offer { place: place.clone(), label, body: &snippet["body"] });
    }
    if let Some(name) = node["$ref"].as_str() {
        collect(root, root.pointer(&name[1..]).expect("a definition"), place, found);
    }
    for branch in ["anyOf", "oneOf"].iter().filter_map(|keyword| node[*keyword].as_array()).flatten() {
        collect(root, branch, place, found);
    }
    let named = node.get("additionalProperties").filter(|value| value.is_object());
    let name = if place.last().is_some_and(|last| last == "roles") { "train" } else { "lab" };
    let properties = node["properties"].as_object().into_iter().flatten();
    for (key, child) in
        properties.map(|(key, child)| (key.as_str(), child)).chain(named.map(|child| (name, child)))
    {
        place.push(key.to_owned());
        collect(root, child, place, found);
        place.pop();
    }
}

/// The bodies that come of a body when each of its choices is taken in turn, and its first texts stay.
fn filled(body: &Value) -> Vec<Value> {
    let most = choices(body);
    (0..most).map(|nth| fill(body, nth)).collect()
}

/// The maximum number of choices at one place of a body; 1 if it has none.
fn choices(body: &Value) -> usize {
    let own = |text: &str| text.split('|').nth(1).map_or(1, |list| list.split(',').count());
    match body {
        Value::String(text) => own(text),
        Value::Array(items) => items.iter().map(choices).max().unwrap_or(1),
        Value::Object(map) => map.values().map(choices).max().unwrap_or(1),
        _ => 1,
    }
}

fn fill(body: &Value, nth: usize) -> Value {
    match body {
        Value::String(text) => match text.strip_prefix('^') {
            Some(bare) => {
                serde_json::from_str(&placeholders(bare, nth)).expect("a bare text is a JSON value")
            }
            None => placeholders(text, nth).into(),
        },
        Value::Array(items) => items.iter().map(|item| fill(item, nth)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (placeholders(key, nth), fill(value, nth)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// `${1:text}` becomes `text`, `${1|a,b|}` the nth of its choices; anything else in braces is refused.
fn placeholders(text: &str, nth: usize) -> String {
    let Some((before, rest)) = text.split_once("${") else {
        assert!(!text.contains('$'), "`{text}` has a `$` that editors take for a variable");
        return text.to_owned();
    };
    assert!(!before.contains('$'), "`{text}` has a `$` that editors take for a variable");
    let (inside, after) = rest.split_once('}').expect("a placeholder ends");
    let default = match inside.split_once(['|', ':']) {
        Some((_, list)) if list.ends_with('|') => {
            let choices: Vec<&str> = list.trim_end_matches('|').split(',').collect();
            choices[nth.min(choices.len() - 1)]
        }
        Some((_, default)) => default,
        None => panic!("`{text}` has a place without a first text"),
    };
    format!("{before}{default}{}", placeholders(after, nth))
}

/// Inserts a body; a map is merged into the existing map.
fn place(document: &mut Value, at: &[String], body: Value) {
    match (at, document) {
        ([], Value::Object(map)) if body.is_object() => {
            map.extend(body.as_object().cloned().unwrap_or_default());
        }
        ([], whole) => *whole = body,
        ([step, rest @ ..], Value::Object(map)) => {
            place(map.entry(step).or_insert_with(|| json!({})), rest, body);
        }
        ([..], other) => {
            *other = json!({});
            place(other, at, body);
        }
    }
}

fn base_job() -> Value {
    let resources = json!({"cpu": 1, "memory": "1GiB", "shm": "64MiB", "ports": {"http": 8080}});
    json!({
        "version": 1, "name": "base", "image": "python:3.12-slim",
        "roles": {"train": {"run": "true", "resources": resources}, "server": {"run": "true", "resources": resources}}
    })
}

/// The errors of a job for the targets, or for the built-in ones, of which one at least must be able to take it.
fn errors(job: &Value, targets: Option<&Value>) -> Vec<String> {
    let files = MemoryFiles::default().with("Dockerfile", "FROM python:3.12-slim\n");
    let case = Case {
        job: Source::new("job.json", job.to_string()),
        targets: targets.map(|targets| Source::new("targets.json", targets.to_string())),
        params: vec![],
        arguments: Arguments::default(),
        files: &files,
    };
    let compiled = case.compile();
    let wrong = compiled.findings.iter().filter(|d| d.severity == Severity::Error);
    let mut errors: Vec<String> = wrong.map(|d| format!("{}: {}", d.code, d.message)).collect();
    if errors.is_empty() && compiled.outputs.is_empty() {
        errors.push("no target can take it".to_owned());
    }
    errors
}

/// Puts every block of a schema into a file of its kind, and says which do not compile.
fn check(schema: &str, base: &Value, errors: impl Fn(&Value) -> Vec<String>) -> usize {
    assert_eq!(errors(base), Vec::<String>::new(), "the file that blocks are put into");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let mut wrong = vec![];
    let mut count = 0;
    for offer in offers(&schema) {
        for body in filled(offer.body) {
            let whole = offer.place.is_empty() && body.get("version").is_some();
            let mut file = if whole { json!({}) } else { base.clone() };
            place(&mut file, &offer.place, body);
            count += 1;
            let errors = errors(&file);
            if !errors.is_empty() {
                wrong.push(format!("`{}` at /{}: {errors:?}\n{file}", offer.label, offer.place.join("/")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    count
}

#[test]
fn every_block_of_the_job_schema_compiles_with_its_first_texts() {
    let count = check(JOB_SCHEMA, &base_job(), |job| errors(job, None));
    assert!(count > 30, "only {count} blocks");
}

#[test]
fn every_block_of_the_targets_schema_compiles_with_its_first_texts() {
    let base = json!({"version": 1, "targets": {"lab": {"backends": ["kubernetes"]}}});
    let count = check(TARGETS_SCHEMA, &base, |targets| {
        let mut job = base_job();
        // What a target provides is something the job has.
        for name in targets
            .pointer("/targets/lab/kubernetes/storage")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            job["data"] = json!({name.0: {"mount": "/data"}});
        }
        errors(&job, Some(targets))
    });
    assert!(count >= 6, "only {count} blocks");
}

#[test]
fn no_place_offers_two_blocks_by_one_name() {
    for schema in [JOB_SCHEMA, TARGETS_SCHEMA] {
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        for offer in offers(&schema) {
            let same = |other: &&Offer<'_>| other.place == offer.place && other.label == offer.label;
            assert_eq!(
                offers(&schema).iter().filter(same).count(),
                1,
                "`{}` is offered twice at a place",
                offer.label
            );
        }
    }
}

/// The catalogue's entries must be what SchemaStore takes: a name, a description, file matches, an address.
#[test]
fn the_catalogue_names_the_published_addresses() {
    let path = workspace().join("editors/schemastore.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let entries: Vec<Value> = serde_json::from_str(&text).expect("a list");
    let of = |schema: &str| serde_json::from_str::<Value>(schema).expect("JSON")["$id"].clone();
    let addresses: Vec<&Value> = entries.iter().map(|entry| &entry["url"]).collect();
    assert_eq!(addresses, [&of(JOB_SCHEMA), &of(TARGETS_SCHEMA)]);
    let known = |pattern: &Value| pattern.as_str().is_some_and(|pattern| pattern.contains("job"));
    for entry in &entries {
        let texts = ["name", "description", "url"].map(|key| entry[key].as_str().map_or(0, str::len));
        assert!(texts.iter().all(|length| *length > 0), "{entry}");
        assert!(entry["fileMatch"].as_array().is_none_or(|patterns| patterns.iter().all(known)), "{entry}");
    }
    // A catalog applies to every file of every user: names that other tools also use need a modeline, so targets files
    // have no match.
    let all = || entries.iter().filter_map(|entry| entry["fileMatch"].as_array()).flatten();
    assert!(all().any(|pattern| pattern == "*.job.yaml"));
    for common in ["job.yaml", "job.yml", "job.json", "targets.yaml", "targets.yml"] {
        assert!(all().all(|pattern| pattern != common), "`{common}` would be claimed in every repository");
    }
}

#[test]
fn a_starter_job_has_a_modeline() {
    for directory in jobc_tests::examples() {
        let job = jobc_tests::job_file(&directory).expect("a job");
        if job.extension() != Some("yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&job).expect("text");
        let first = text.lines().next().unwrap_or_default();
        let schema = first.strip_prefix("# yaml-language-server: $schema=").unwrap_or_default();
        assert!(
            schema.starts_with("../") && schema.ends_with("/schemas/job.v1.schema.json"),
            "{job}: {first}"
        );
        assert!(directory.join(schema).is_file());
    }
}
