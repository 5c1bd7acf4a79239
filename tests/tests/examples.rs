//! The examples: each builds without a finding, to the same bytes everywhere, as is committed next to it.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::backend::Content;
use jobc_compiler::built_in_targets::built_in_targets;
use jobc_compiler::compile::Output;
use jobc_compiler::diagnostic::Severity;
use jobc_compiler::emit::to_yaml;
use jobc_compiler::template::{built_in, describe};
use jobc_compiler::why::explain;
use jobc_compiler::why::source_map::{FILE, SourceMap};
use jobc_dockerfile::Options;
use jobc_schema::{JOB_SCHEMA, PLAN_SCHEMA, TARGETS_SCHEMA};
use jobc_tests::compile::{Arguments, Compilation, compile_directory, compile_with};
use jobc_tests::sections::{section, sections};
use jobc_tests::{examples, job_file, workspace};
use serde_json::Value;

fn compile(example: &Utf8Path) -> Compilation {
    compile_copy(example, example)
}

/// As above, with the files in another directory.
fn compile_copy(example: &Utf8Path, copy: &Utf8Path) -> Compilation {
    let job = job_file(copy).expect("an example has a job file");
    if example.file_name() != Some("hello-cpu") {
        return compile_directory(&job);
    }
    // It has no targets file, and its output is committed for each target.
    let targets = built_in_targets().map(|(name, _)| name.to_owned()).to_vec();
    compile_with(&job, Arguments { targets, ..Arguments::default() })
}

/// The files that are executed as programs.
fn programs(compiled: &Compilation) -> BTreeSet<Utf8PathBuf> {
    let place = |output: &Output| Utf8Path::new(&output.job.name).join(&output.job.target.name);
    let all = compiled
        .outputs
        .iter()
        .flat_map(|o| o.artifacts.iter().map(move |a| (place(o).join(&a.path), a.mode)));
    all.filter(|(_, mode)| mode & 0o111 != 0).map(|(path, _)| path).collect()
}

/// Every file that a build writes below `out/`, with its bytes.
fn files(compiled: &Compilation) -> BTreeMap<Utf8PathBuf, Vec<u8>> {
    let place = |output: &Output| Utf8Path::new(&output.job.name).join(&output.job.target.name);
    let mut files = BTreeMap::new();
    for output in &compiled.outputs {
        for artifact in &output.artifacts {
            let path = place(output).join(&artifact.path);
            let before = files.insert(path.clone(), artifact.bytes.clone());
            assert!(before.is_none(), "{path} is written twice");
        }
    }
    files
}

/// Every file below a directory, by its path from there.
fn read(directory: &Utf8Path) -> BTreeMap<Utf8PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in next.read_dir_utf8().into_iter().flatten().map(|entry| entry.expect("an entry")) {
            if entry.file_type().expect("its type").is_dir() {
                todo.push(entry.path().to_owned());
            } else {
                let path = entry.path().strip_prefix(directory).expect("it lies below").to_owned();
                files.insert(path, fs::read(entry.path()).expect("its bytes"));
            }
        }
    }
    files
}

#[test]
fn no_example_has_findings() {
    let mut output = vec![];
    for example in examples() {
        let compiled = compile(&example);
        if compiled.count(Severity::Error) + compiled.count(Severity::Warning) > 0 {
            output.push(format!("{example}\n{}", compiled.text()));
        }
        assert!(!compiled.outputs.is_empty() || !output.is_empty(), "{example} builds nothing");
    }
    assert!(output.is_empty(), "{}", output.join("\n"));
}

/// The examples that keep their output in `out/`: together they have every backend and every kind of input.
const WHOLE: [&str; 5] = ["dag", "hello-cpu", "openpai-short", "resnet-1gpu", "torchrun-4x8"];

/// The most lines of an `out.snap`: one screen.
const SCREEN: usize = 60;

/// Whether a file of the output is committed.
///
/// A plan and a source map are kept once. The limits of cgroup v1 and v2 are one value each, which the backend's own
/// snapshot shows and the oracles compare with the plan. A role's instances differ by their numbers.
fn is_kept(path: &Utf8Path) -> bool {
    let instance = |part: &str| part.rsplit_once('-').and_then(|(_, index)| index.parse::<u32>().ok());
    match path.iter().skip(2).collect::<Vec<_>>()[..] {
        ["plan.json" | "sourcemap.json"] => path.starts_with("resnet50/local"),
        ["cgroup", _, "v1" | "v2", ..] => false,
        ["oci" | "cgroup", task, ..] => instance(task) == Some(0),
        _ => true,
    }
}

fn is_update() -> bool {
    std::env::var_os("JOBC_UPDATE").is_some_and(|value| value == "1")
}

fn assert_no_difference(differ: &[Utf8PathBuf]) {
    let list: Vec<&str> = differ.iter().map(|path| path.as_str()).collect();
    assert!(
        is_update() || list.is_empty(),
        "JOBC_UPDATE=1 writes them again, then read the change:\n{}",
        list.join("\n")
    );
}

#[test]
fn the_output_is_what_is_committed() {
    let mut differ = Vec::new();
    for example in WHOLE.map(|name| workspace().join("examples").join(name)) {
        let compiled = compile(&example);
        let (mut made, mut programs, out) = (files(&compiled), programs(&compiled), example.join("out"));
        made.retain(|path, _| is_kept(path));
        programs.retain(|path| is_kept(path));
        let golden = read(&out);
        let is_program = |path: &Utf8PathBuf| {
            fs::metadata(out.join(path)).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
        };
        let other_mode = |path: &&Utf8PathBuf| is_program(path) != programs.contains(*path);
        if made == golden && !made.keys().any(|path| other_mode(&path)) {
            continue;
        }
        let changed =
            made.iter().filter(|(path, bytes)| golden.get(*path) != Some(*bytes)).map(|(path, _)| path);
        let gone = golden.keys().filter(|path| !made.contains_key(*path));
        differ.extend(changed.chain(gone).chain(made.keys().filter(other_mode)).map(|path| out.join(path)));
        if is_update() {
            if out.exists() {
                fs::remove_dir_all(&out).expect("the golden files can be removed");
            }
            for (path, bytes) in &made {
                let path = out.join(path);
                fs::create_dir_all(path.parent().expect("a directory")).expect("the directory can be made");
                fs::write(&path, bytes).expect("the golden file can be written");
            }
            for path in programs {
                fs::set_permissions(out.join(path), fs::Permissions::from_mode(0o755))
                    .expect("its mode can be set");
            }
        }
    }
    assert_no_difference(&differ);
}

/// `jobc build --explain`: a field of the job, a setting of the target, or a reason in words.
#[test]
fn every_line_of_a_manifest_has_a_reason() {
    let mut without = vec![];
    let mut lines = 0;
    for example in examples() {
        for output in compile(&example).outputs {
            let text = |path: &Utf8Path| {
                let artifact = output.artifacts.iter().find(|artifact| artifact.path == path)?;
                Some(String::from_utf8_lossy(&artifact.bytes).into_owned())
            };
            let Some(map) = text(Utf8Path::new(FILE)) else { continue };
            let map = SourceMap::parse(&map).expect("a source map");
            let is_manifest = |path: &&String| {
                let path = Utf8Path::new(path);
                path.starts_with("kubernetes") && path.extension() == Some("yaml")
            };
            for path in map.artifacts.keys().filter(is_manifest) {
                let text = text(Utf8Path::new(path)).expect("a file of the map");
                for line in explain(&map.artifacts[path], path, &text).iter().filter(|line| line.has_value) {
                    lines += 1;
                    if line.reasons.is_empty() {
                        without.push(format!("{}/{path}: {}", output.job.name, line.text.trim()));
                    }
                }
            }
        }
    }
    assert!(lines > 1000, "only {lines} lines were found");
    assert!(without.is_empty(), "{} lines have no reason:\n{}", without.len(), without.join("\n"));
}

/// The other examples commit the parts that matter in `out.snap`: each section names an artifact below `out/`, and in
/// YAML or JSON a part of it by a JSON pointer.
#[test]
fn the_parts_that_matter_are_what_is_committed() {
    let mut differ = Vec::new();
    for example in examples() {
        let path = example.join("out.snap");
        if WHOLE.contains(&example.file_name().expect("an example has a name")) {
            assert!(!path.exists(), "{path}: the example keeps its whole output in out/");
            continue;
        }
        let before = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let made = files(&compile(&example));
        let now: String =
            sections(&before).iter().map(|(name, _)| section(name, &part(&made, name))).collect();
        assert!(
            !now.is_empty(),
            "{path} names no part, as in `==== JOB/TARGET/kubernetes/01-job.yaml /spec`"
        );
        let lines = now.lines().count();
        assert!(lines <= SCREEN, "{path} would have {lines} lines, more than the {SCREEN} of a screen");
        if before != now {
            if is_update() {
                fs::write(&path, now).expect("the snapshot can be written");
            }
            differ.push(path);
        }
    }
    assert_no_difference(&differ);
}

fn part(made: &BTreeMap<Utf8PathBuf, Vec<u8>>, name: &str) -> String {
    let (path, pointer) = name.split_once(' ').unwrap_or((name, ""));
    let path = Utf8Path::new(path);
    let bytes = made.get(path).unwrap_or_else(|| panic!("{path} is not written"));
    let text = std::str::from_utf8(bytes).expect("every artifact is text");
    if pointer.is_empty() {
        return text.to_owned();
    }
    let value = structure(path, text);
    to_yaml(value.pointer(pointer).unwrap_or_else(|| panic!("{path} has no `{pointer}`")))
}

#[test]
fn each_build_gives_the_same_bytes_here_and_elsewhere() {
    for example in examples() {
        let first = files(&compile(&example));
        assert_eq!(first, files(&compile(&example)), "{example} differs from build to build");
        let elsewhere = tempfile::tempdir().expect("a directory");
        let copy =
            Utf8Path::from_path(elsewhere.path()).expect("a UTF-8 path").join("another place/深い/directory");
        for (path, bytes) in read(&example).into_iter().filter(|(path, _)| !path.starts_with("out")) {
            let path = copy.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("the directory can be made");
            fs::write(path, bytes).expect("the copy can be written");
        }
        assert_eq!(first, files(&compile_copy(&example, &copy)), "{example} differs at another place");
    }
}

#[test]
fn no_file_has_a_path_of_the_host_that_built_it() {
    let here = workspace();
    for example in examples() {
        for (path, bytes) in files(&compile(&example)) {
            let text = String::from_utf8(bytes).expect("every artifact is text");
            assert!(!text.contains(here.as_str()), "{example}: {path} holds `{here}`");
        }
    }
}

/// Other people's readers see in a file what the backend meant.
#[test]
fn every_file_is_read_back_as_it_was_meant() {
    for example in examples() {
        let compiled = compile(&example);
        let made = files(&compiled);
        let mut read = 0;
        for (job, lowered) in &compiled.lowered {
            for (backend, file) in
                lowered.iter().flat_map(|l| l.files.iter().map(move |file| (l.backend, file)))
            {
                let (Content::Yaml(meant) | Content::Json(meant)) = &file.content else { continue };
                let path = [job.name.as_str(), &job.target.name, backend.as_str()]
                    .iter()
                    .collect::<Utf8PathBuf>()
                    .join(&file.path);
                let text = std::str::from_utf8(&made[&path]).expect("every artifact is text");
                assert_eq!(structure(&path, text), *meant, "{path}");
                no_nulls(meant, &path);
                read += 1;
            }
        }
        assert!(read > 0, "{example} has no YAML and no JSON");
        for (path, bytes) in made {
            let text = String::from_utf8(bytes).expect("every artifact is text");
            assert!(!text.contains(['\r', '\0']), "{path}");
        }
    }
}

/// The reader of Dockerfiles accepts those that jobc writes, without a remark.
#[test]
fn every_dockerfile_is_accepted_by_its_reader() {
    let options = Options { args: &[], target: None, platform: "linux/amd64", build_platform: "linux/amd64" };
    let mut read = 0;
    for example in examples() {
        for (path, bytes) in files(&compile(&example)) {
            if path.file_name() == Some("Dockerfile") {
                let build = jobc_dockerfile::read(&bytes, &options);
                assert!(build.as_ref().is_ok_and(|build| build.remarks.is_empty()), "{path}: {build:?}");
                read += 1;
            }
        }
    }
    assert!(read >= 5, "only {read} Dockerfiles are in the examples");
}

/// A null means nothing to any of the targets, and often is an empty value that somebody forgot.
fn no_nulls(value: &Value, path: &Utf8Path) {
    match value {
        Value::Null => panic!("{path} holds a null"),
        Value::Array(items) => items.iter().for_each(|item| no_nulls(item, path)),
        Value::Object(entries) => entries.values().for_each(|value| no_nulls(value, path)),
        _ => {}
    }
}

fn validator(schema: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(schema).expect("a schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is sound")
}

fn assert_valid(validator: &jsonschema::Validator, value: &Value, name: &Utf8Path) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{name}{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn inputs_and_plans_fit_their_schemas() {
    let (job, targets, plan) = (validator(JOB_SCHEMA), validator(TARGETS_SCHEMA), validator(PLAN_SCHEMA));
    let parse = |path: &Utf8Path| -> Value {
        let text = fs::read_to_string(path).expect("the file is there");
        serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    for example in examples() {
        let path = job_file(&example).expect("an example has a job file");
        let value = parse(&path);
        // The other formats have their own schemas.
        if value.get("version").is_some() {
            assert_valid(&job, &value, &path);
        }
        let path = example.join("targets.yaml");
        if path.is_file() {
            assert_valid(&targets, &parse(&path), &path);
        }
        for (path, bytes) in files(&compile(&example)) {
            if path.file_name() == Some("plan.json") {
                assert_valid(&plan, &serde_json::from_slice(&bytes).expect("a plan is JSON"), &path);
            }
        }
    }
}

/// The map names files that were written, parts that are in them, and places that are in the job file or a template.
#[test]
fn the_source_map_holds() {
    for example in examples() {
        let job = job_file(&example).expect("an example has a job file");
        let text = fs::read_to_string(&job).expect("the job file");
        let lines: Vec<&str> = text.lines().collect();
        let all = files(&compile(&example));
        for (path, bytes) in all.iter().filter(|(path, _)| path.file_name() == Some("sourcemap.json")) {
            let map: Value = serde_json::from_slice(bytes).expect("a source map is JSON");
            let artifacts = map["artifacts"].as_object().expect("a map of artifacts");
            assert!(!artifacts.is_empty(), "{path} maps nothing");
            for (artifact, parts) in artifacts {
                let file = path.with_file_name("").join(artifact);
                let bytes =
                    all.get(&file).unwrap_or_else(|| panic!("{path} names {artifact}, which is not written"));
                let artifact_text = String::from_utf8_lossy(bytes);
                let value = structure(&file, &artifact_text);
                for part in parts.as_array().expect("a list of parts") {
                    check_part(part, &file, &artifact_text, &value, &lines);
                }
            }
        }
    }
}

/// The value of a YAML or JSON file; null for other files.
fn structure(file: &Utf8Path, text: &str) -> Value {
    match file.extension() {
        Some("json") => serde_json::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}")),
        Some("yaml") => serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}")),
        _ => Value::Null,
    }
}

fn check_part(part: &Value, file: &Utf8Path, artifact: &str, value: &Value, job: &[&str]) {
    if let Some(pointer) = part["pointer"].as_str() {
        assert!(value.pointer(pointer).is_some(), "{file} has no `{pointer}`");
    } else {
        let line =
            usize::try_from(part["line"].as_u64().expect("a pointer or a line")).expect("a small number");
        assert!(line >= 1 && line <= artifact.lines().count(), "{file} has no line {line}");
    }
    let origins = ["spec", "target", "default"].iter().filter(|key| part.get(**key).is_some()).count();
    assert_eq!(origins, 1, "{file}: {part} has no origin, or several");
    if let Some(start) = part.get("start") {
        let template = part["file"].as_str().map(|name| name.trim_start_matches("std/"));
        let text =
            template.and_then(|name| built_in().find(|(known, _)| *known == name)).map(|(_, text)| text);
        let lines = text.map(|text| text.lines().collect::<Vec<&str>>());
        let job = lines.as_deref().unwrap_or(job);
        let number =
            |i: usize| usize::try_from(start[i].as_u64().expect("a number")).expect("a small number");
        let (line, column) = (number(0), number(1));
        let there = line.checked_sub(1).and_then(|line| job.get(line));
        let there = there.unwrap_or_else(|| panic!("{file}: {part} is outside of its file"));
        assert!(column >= 1 && column <= there.chars().count() + 1, "{file}: {part} is outside of its line");
    }
}

#[test]
fn each_has_a_page() {
    for example in examples() {
        let page = example.join("README.md");
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.starts_with("# ") && text.lines().count() >= 3, "{page} says too little");
    }
}

/// The schema of a template's parameters takes the `with` of its example, and refuses what the pass refuses.
#[test]
fn inputs_of_templates_fit_their_schemas() {
    for (name, text) in built_in() {
        let schema = describe(text).expect("a built-in template").schema();
        let schema = validator(&schema.to_string());
        let path = workspace().join("examples/templates").join(name).join("job.yaml");
        let job: Value =
            serde_yaml::from_str(&fs::read_to_string(&path).expect("its example")).expect("YAML");
        let roles = job["roles"].as_object().into_iter().flat_map(|roles| roles.values());
        let user = [&job].into_iter().chain(roles).find(|node| node["uses"] == format!("std/{name}"));
        let with = user.unwrap_or_else(|| panic!("{path} does not use std/{name}"))["with"].clone();
        assert_valid(&schema, &with, &path);
        let mut wrong = with;
        wrong["unknown"] = 1.into();
        assert!(!schema.is_valid(&wrong), "std/{name} takes an unknown parameter");
    }
}
