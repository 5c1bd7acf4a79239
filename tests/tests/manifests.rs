//! Manifests of Kubernetes: each sample is converted, nothing of it vanishes, and what comes out builds again. Manifests that
//! jobc wrote come out as they went in, but for differences that are named here.
//!
//! Public files are read where the corpus lies beside the repository.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::render::{Format as Rendered, TextStyle, render};
use jobc_compiler::diagnostic::{Severity, Sink};
use jobc_compiler::document::Node;
use jobc_compiler::format::format;
use jobc_compiler::import::Account;
use jobc_compiler::import::Selection;
use jobc_compiler::parse::parse;
use jobc_compiler::rewrite::{RewriteResult, rewrite};
use jobc_compiler::source::{Source, Sources, Span};
use jobc_tests::clusters::{ClusterCase, manifests};
use jobc_tests::compile::{Arguments, Case, Compilation, compile_with};
use jobc_tests::disk::DiskFiles;
use jobc_tests::leaves::Leaves;
use jobc_tests::sections::section;
use jobc_tests::{entries, examples, job_file, workspace};
use serde_json::{Value as Json, json};

/// What became of a manifest.
struct Imported {
    sources: Sources,
    job: Option<String>,
    targets: Option<String>,
    account: Account,
    findings: String,
}

fn import(name: &str, text: &str, only: Option<&str>) -> Imported {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(name, text));
    let mut sink = Sink::new();
    let selection = Selection { name: only.map(str::to_owned), is_sketch: true, ..Selection::default() };
    let (result, account) = rewrite(&mut sources, id, &DiskFiles(directory()), &selection, &mut sink);
    let findings = sink.finish();
    let is_refused = findings.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(
        matches!(result, RewriteResult::Refused),
        is_refused,
        "{name}: refused without a reason, or not"
    );
    let findings = render(Rendered::Short, &sources, &findings, &TextStyle::default());
    match result {
        RewriteResult::Job(job, targets) => Imported { sources, job: Some(job), targets, account, findings },
        _ => Imported { sources, job: None, targets: None, account, findings },
    }
}

fn directory() -> Utf8PathBuf {
    workspace().join("tests/foreign/kubernetes")
}

fn samples() -> Vec<Utf8PathBuf> {
    let all: Vec<_> =
        entries(&directory()).into_iter().filter(|path| path.extension() == Some("yaml")).collect();
    assert!(all.len() > 9, "only {} samples", all.len());
    all
}

fn read(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The job file as a cluster of the targets file builds it.
fn built(job: &str, targets: Option<&str>) -> Compilation {
    let files = DiskFiles(directory());
    let name = if targets.is_some() { "cluster" } else { "kubernetes" };
    Case {
        job: Source::new("job.yaml", job),
        targets: targets.map(|text| Source::new("targets.yaml", text)),
        params: vec![],
        arguments: Arguments { targets: vec![name.to_owned()], ..Arguments::default() },
        files: &files,
    }
    .compile()
}

#[test]
fn samples_are_converted_and_build_again() {
    for path in samples() {
        let imported = import(path.file_name().unwrap(), &read(&path), None);
        let job = imported.job.as_deref().unwrap_or_else(|| panic!("{path}:\n{}", imported.findings));
        assert_eq!(format(job).as_deref(), Some(job), "{path}: `jobc fmt` changes it");
        let compiled = built(job, imported.targets.as_deref());
        assert_eq!(compiled.count(Severity::Error), 0, "{path}\n{job}\n{}", compiled.text());
        let mut snapshot = section("job.yaml", job);
        snapshot += &imported.targets.map(|text| section("targets.yaml", &text)).unwrap_or_default();
        snapshot += &section("findings", &imported.findings);
        let mut account = String::new();
        for line in imported.account.lines(&imported.sources) {
            let source = line.source.lines().next().unwrap_or_default();
            let _ = writeln!(account, "{}: {source} -> {}: {}", line.line, line.outcome, line.becomes);
        }
        snapshot += &section("account", &account);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(directory());
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(path.file_stem().unwrap(), snapshot));
    }
}

/// Every leaf of the object that became the job has a row, at itself or at what it belongs to; the other objects have one
/// each.
#[test]
fn no_leaf_vanishes() {
    let mut counted = 0;
    for path in samples().into_iter().chain(corpus()) {
        let text = read(&path);
        let imported = import(path.file_name().unwrap(), &text, None);
        let rows: BTreeSet<Span> = imported.account.rows().iter().map(|row| row.span).collect();
        if rows.is_empty() {
            continue;
        }
        let mut sources = Sources::new();
        let id = sources.add(Source::new(path.file_name().unwrap(), text.as_str()));
        let Some(document) = parse(&sources, id, &mut Sink::new()) else { continue };
        let objects = match document.root.get("items") {
            Some(items) => items.items().to_vec(),
            None => vec![document.root.clone()],
        };
        for object in objects {
            let kind = object.get("kind").map(|kind| kind.span).unwrap_or_default();
            if rows.contains(&kind) && objects_beside(&object) {
                counted += 1;
                continue;
            }
            let mut leaves = Leaves::default();
            leaves.count(&object, false, &rows);
            counted += leaves.counted;
            let lines: Vec<String> = leaves
                .missing
                .iter()
                .map(|span| {
                    format!("{}: {}", sources.get(id).line_column(span.start).line, sources.slice(*span))
                })
                .collect();
            assert!(lines.is_empty(), "{path}: not in the account:\n{}", lines.join("\n"));
        }
    }
    assert!(counted > 300, "only {counted} leaves");
}

/// Whether an object runs no pods.
fn objects_beside(object: &Node) -> bool {
    let kind = object.get("kind").and_then(Node::as_str).unwrap_or_default();
    !(kind.ends_with("Job")
        || ["Pod", "JobSet", "LeaderWorkerSet", "Deployment", "StatefulSet"].contains(&kind))
}

fn corpus() -> Vec<Utf8PathBuf> {
    let corpus = workspace().join("../shared/corpus/kubernetes");
    if !corpus.is_dir() {
        eprintln!("manifests: the corpus of Kubernetes is absent; samples of the project's own");
        return vec![];
    }
    entries(&corpus).into_iter().filter(|path| matches!(path.extension(), Some("yaml" | "yml"))).collect()
}

/// The names of the jobs of a file with several, from the finding.
fn names(findings: &str) -> Vec<String> {
    let Some((_, list)) = findings.split_once(" jobs: ") else { return vec![] };
    let line = list.lines().next().unwrap_or_default();
    line.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Most public manifests are converted, and the others have an error at a place of theirs. What comes out builds, but for
/// placeholders of the source.
#[test]
fn public_manifests_are_converted() {
    let files = corpus();
    let (mut converted, mut refused, mut unbuilt) = (0, String::new(), String::new());
    for path in &files {
        let name = path.file_name().unwrap();
        let text = read(path);
        let first = import(name, &text, None);
        let several = names(&first.findings);
        let all = if first.findings.contains("J0636") {
            several.iter().map(|only| import(name, &text, Some(only))).collect()
        } else {
            vec![first]
        };
        if let Some(bad) = all.iter().find(|imported| imported.job.is_none()) {
            let errors = bad.findings.lines().filter(|line| line.contains("error["));
            refused += &errors.take(2).map(|line| format!("{line}\n")).collect::<String>();
            continue;
        }
        converted += 1;
        for imported in all {
            let job = imported.job.unwrap();
            assert_eq!(format(&job).as_deref(), Some(job.as_str()), "{path}: `jobc fmt` changes it");
            let compiled = built(&job, imported.targets.as_deref());
            let errors = compiled.short();
            let errors = errors.lines().filter(|line| line.contains("error["));
            unbuilt += &errors.map(|line| format!("{name}: {line}\n")).collect::<String>();
        }
    }
    eprintln!("{converted} of {} manifests are converted; the others:\n{refused}", files.len());
    eprintln!("errors of `jobc build`:\n{unbuilt}");
    assert!(converted * 100 >= files.len() * 90, "{converted} of {}:\n{refused}", files.len());
    // Placeholders and parameters for images, and what a backend says with `--allow-lossy`.
    let known = ["J0223", "J0260", "J0402"];
    let others: Vec<&str> =
        unbuilt.lines().filter(|line| !known.iter().any(|code| line.contains(code))).collect();
    assert!(others.is_empty(), "these do not build:\n{}", others.join("\n"));
}

/// Manifests of a compilation as one file.
fn file(objects: &[Json]) -> String {
    objects.iter().map(|object| format!("---\n{}", serde_yaml::to_string(object).unwrap())).collect()
}

/// What an import may change of a manifest that jobc wrote: paths of leaves, with the reason.
const CHANGES: &[(&str, &str)] = &[
    (
        ".env[JOBC_",
        "which of them a task has depends on `distributed`, `matrix` and `compat`, and no manifest has these",
    ),
    ("PodGroup/", "`gang: native` of a target"),
    ("Workload/", "`gang: native` of a target"),
    (".schedulingGroup.", "`gang: native` of a target"),
    (".workloadRef.", "`gang: native` of a target"),
    (".failurePolicy.rules[", "JobSet 0.10 has patterns; the same rules have other names"),
    ("scheduling.volcano.sh/queue-name", "the queue of a runtime's own pods"),
    (
        ".launcherCreationPolicy",
        "the operator's own wait for the workers; `needs` of the launcher in a job file",
    ),
    (".submitterPodTemplate.", "jobc writes the pod that submits"),
    ("ConfigMap/jobc-code-", "the code of a job is packed"),
    (":jobc-code]", "the code of a job is packed"),
    (".env[RANK]", "a number of the instance is written in another way"),
    ("[jobc-code", "the code of a job is packed"),
    (
        "replicatedJobs[node].template.spec.template.metadata.labels.jobc.dev/role",
        "the role is called as the group of a platform's runtime",
    ),
];

/// What comes back as another job, with the reason.
const OTHERS: &[(&str, &str)] = &[
    ("horovod", "the Job ends with its first instance, which `distributed.launch` says"),
    ("heat", "the Job ends with its first instance, which `distributed.launch` says"),
];

/// Imports what jobc wrote and builds it again; returns the leaves that differ.
fn round_trip(name: &str, objects: &[Json]) -> Vec<String> {
    let text = file(objects);
    let imported = import("manifest.yaml", &text, None);
    if OTHERS.iter().any(|(other, _)| name.ends_with(other)) {
        assert!(imported.job.is_some() && imported.findings.contains("warning["), "{name} comes back now");
        return vec![];
    }
    let Some(job) = imported.job else { return vec![format!("{name}: refused\n{}", imported.findings)] };
    let compiled = built(&job, imported.targets.as_deref());
    if name.starts_with("deepspeed") {
        // Its host file is there for the framework, which no manifest names.
        return vec![];
    }
    if compiled.count(Severity::Error) > 0 {
        return vec![format!(
            "{name}: does not build\n{job}\n{}\n{}",
            imported.targets.unwrap_or_default(),
            compiled.short()
        )];
    }
    let again: Vec<Json> = manifests(&compiled).into_iter().map(|(_, value)| value).collect();
    let of = |objects: &[Json]| -> BTreeMap<String, Json> {
        let mut all = BTreeMap::new();
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default();
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            flatten(&format!("{kind}/{name}"), object, &mut all);
        }
        all
    };
    let (before, after) = (of(objects), of(&again));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let is_named = |path: &str| CHANGES.iter().any(|(part, _)| path.contains(part));
    paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path) && !is_named(path))
        .map(|path| format!("{name}: {path}: {:?} became {:?}", before.get(path), after.get(path)))
        .collect()
}

/// The leaves of an object, by path; items of lists by their names.
fn flatten(path: &str, value: &Json, all: &mut BTreeMap<String, Json>) {
    match value {
        Json::Object(map) => {
            map.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, all));
        }
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let name = ["name", "mountPath", "key"].iter().find_map(|key| item[*key].as_str());
                let mount = item["mountPath"].as_str().map(|mount| format!("{mount}:")).unwrap_or_default();
                let name = name.map_or(at.to_string(), |name| format!("{mount}{name}"));
                flatten(&format!("{path}[{name}]"), item, all);
            }
        }
        leaf => {
            all.insert(path.to_owned(), leaf.clone());
        }
    }
}

#[test]
fn manifests_of_jobc_come_back() {
    let mut differences = Vec::new();
    let mut tried = 0;
    for case in ClusterCase::all("kinds") {
        let objects: Vec<Json> = manifests(&case.compile()).into_iter().map(|(_, value)| value).collect();
        differences.extend(round_trip(&case.name, &objects));
        tried += 1;
    }
    for directory in examples() {
        let Some(job) = job_file(&directory) else { continue };
        let text = std::fs::read_to_string(directory.join("targets.yaml")).unwrap_or_default();
        let targets: Json = serde_yaml::from_str(&text).unwrap_or(json!(null));
        let on_cluster = targets["targets"].as_object().into_iter().flatten().find(|(_, target)| {
            target["backends"].as_array().is_some_and(|all| all.contains(&json!("kubernetes")))
        });
        let name = on_cluster.map_or("kubernetes", |(name, _)| name.as_str());
        let arguments = Arguments { targets: vec![name.to_owned()], ..Arguments::default() };
        let compiled = compile_with(&job, arguments);
        for (plan, _) in &compiled.lowered {
            let of_job =
                |object: &Json| object["metadata"]["labels"]["app.kubernetes.io/name"] == json!(plan.name);
            let objects: Vec<Json> =
                manifests(&compiled).into_iter().map(|(_, value)| value).filter(of_job).collect();
            if objects.is_empty() {
                continue;
            }
            differences
                .extend(round_trip(&format!("{} {}", directory.file_name().unwrap(), plan.name), &objects));
            tried += 1;
            // The other jobs of a sweep differ in values alone.
            break;
        }
    }
    assert!(tried > 20, "only {tried} jobs");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Hostile manifests: deep, long, cut off anywhere.
#[test]
fn hostile_manifests_are_refused_or_read() {
    let many = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: x}}\nspec:\n  containers:\n{}",
        "  - {name: a, image: b, command: [x]}\n".repeat(3_000)
    );
    let variables = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: x}}\nspec:\n  containers:\n  - name: a\n    image: b\n    env:\n{}",
        (0..2_000)
            .map(|at| format!("    - {{name: V{at}, value: \"$(V{})$(V{})\"}}\n", at - 1, at - 1))
            .collect::<String>()
    );
    let lists = format!(
        "apiVersion: v1\nkind: List\nitems:\n{}",
        "- {apiVersion: v1, kind: List, items: []}\n".repeat(2_000)
    );
    let numbers = "apiVersion: batch/v1\nkind: Job\nspec: {completions: 18446744073709551615, parallelism: -1, backoffLimit: 1e99, template: {spec: {containers: [{image: x, resources: {limits: {cpu: 1e99, memory: -5, nvidia.com/gpu: 99999999999999999999}}}]}}}\n";
    for text in [
        many.as_str(),
        &variables,
        &lists,
        numbers,
        "apiVersion: v1\nkind: Pod\n",
        "apiVersion: v1\nkind: Pod\nspec: []\n---\n---\n",
    ] {
        let _ = import("x.yaml", text, None);
    }
    for path in samples() {
        let text = read(&path);
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(7) {
            let _ = import("x.yaml", &text[..end], None);
        }
        for (from, to) in [("name", "Name"), (": ", ": ["), ("spec:", "spec: null #"), ("- ", "- - ")] {
            let _ = import("x.yaml", &text.replace(from, to), None);
        }
    }
}
