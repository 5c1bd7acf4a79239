use jobc_schema::Targets;
use serde_json::{Value as Json, json};

use super::probes::{COUNT, Probe};
use super::{BLOCKS, check, with};
use crate::diagnostic::{DocumentId, Sink};
use crate::parse;
use crate::source::{Source, Sources};
use crate::validate;

/// The findings of a target.
fn findings(target: &Json) -> Vec<String> {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let text = json!({"version": 1, "targets": {"lab": target}}).to_string();
    let id = sources.add(Source::new("targets.yaml", text));
    let document = parse::parse(&sources, id, &mut sink).expect("JSON is YAML");
    let targets: Targets =
        validate::targets(&document, &mut sink).unwrap_or_else(|| panic!("{target}: {sink:?}"));
    check(&targets, &document, &["lab"], &mut sink);
    sink.locate(DocumentId::Targets, &document, &sources);
    sink.diagnostics().iter().map(|found| format!("{}; {}", found.message, found.notes.join("; "))).collect()
}

#[test]
fn every_probe_is_a_job_that_is_lowered() {
    let all = || (0..COUNT).flat_map(Probe::of);
    assert_eq!(all().count(), 15, "one has two combinations");
    for (backend, least) in [("kubernetes", 12), ("slurm", 8), ("openpai", 6), ("cgroup", 10), ("oci", 8)] {
        let settings = serde_json::from_value(json!({"backends": ["oci", backend]})).expect("a target");
        let backend = [backend.parse().expect("a backend")];
        let lowered = all().filter(|probe| !probe.lower(&settings, &backend).is_refused()).count();
        assert!(lowered >= least, "{backend:?}: {lowered}");
    }
}

/// What a setting needs beside it.
const BESIDE: [(&str, &str, &str); 18] = [
    ("kubernetes.replicas", "kubernetes.kind", "leaderworkerset"),
    ("kubernetes.runtime", "kubernetes.kind", "trainjob"),
    ("kubernetes.runtime", "kubernetes.runtime.name", "torch"),
    ("kubernetes.volcano_plugins", "kubernetes.kind", "volcano"),
    ("kubernetes.queue.kai", "kubernetes.gpu.provider", "kai"),
    ("kubernetes.queue.priority", "kubernetes.queue.kueue", "q"),
    ("kubernetes.queue.topology", "kubernetes.queue.kueue", "q"),
    ("kubernetes.gpu.replicas", "kubernetes.gpu.provider", "nvidia-mps"),
    ("kubernetes.gpu.renamed", "kubernetes.gpu.provider", "nvidia-time-slicing"),
    ("kubernetes.gpu.memory_unit", "kubernetes.gpu.provider", "aliyun-gpushare"),
    ("kubernetes.gpu.memory_factor", "kubernetes.gpu.provider", "volcano-vgpu"),
    ("kubernetes.gpu.resource", "kubernetes.gpu.provider", "kubevirt-passthrough"),
    ("kubernetes.gpu.servers", "kubernetes.gpu.provider", "rcuda"),
    ("kubernetes.gpu.library", "kubernetes.gpu.provider", "rcuda"),
    ("kubernetes.gang", "kubernetes.release", "1.35"),
    ("slurm.images", "slurm.container", "pyxis"),
    ("slurm.store", "slurm.container", "jobc"),
    ("slurm.directory", "slurm.container", "jobc"),
];

/// The settings of a block with their examples, below those that are maps of settings.
fn examples(schema: &Json, of: &Json, path: &str, outside: &[&str], found: &mut Vec<(String, Json)>) {
    let resolve =
        |value: &Json| value["$ref"].as_str().and_then(|name| schema.pointer(name.trim_start_matches('#')));
    for (name, property) in of["properties"].as_object().expect("settings") {
        let below = format!("{path}.{name}");
        if outside.contains(&below.split_once('.').expect("a block").1) {
            continue;
        }
        match resolve(property) {
            Some(inner) if inner["properties"].is_object() && property["examples"].is_null() => {
                examples(schema, inner, &below, outside, found);
            }
            _ => found.extend(
                property["examples"].as_array().and_then(|all| all.first()).map(|one| (below, one.clone())),
            ),
        }
    }
}

#[test]
fn the_examples_of_the_schema_have_an_effect() {
    let schema: Json = serde_json::from_str(jobc_schema::TARGETS_SCHEMA).expect("a schema");
    let target = &schema["$defs"]["Target"];
    let mut all = vec![];
    for (block, _, outside) in BLOCKS {
        let property = &target["properties"][block];
        let name = property["$ref"].as_str().or(property["anyOf"][0]["$ref"].as_str()).expect("a definition");
        examples(&schema, &schema["$defs"][name.trim_start_matches("#/$defs/")], block, outside, &mut all);
    }
    assert!(all.len() > 40, "only {} settings have an example", all.len());
    let idle = all.iter().flat_map(|(path, example)| {
        let (block, _) = path.split_once('.').expect("a block");
        let backends = if matches!(block, "oci" | "gpus") { json!(["oci"]) } else { json!(["oci", block]) };
        let target = with(&json!({"backends": backends}), path, Some(example.clone()));
        let beside = BESIDE.iter().filter(|(setting, ..)| path.starts_with(setting));
        let target =
            beside.fold(target, |target, (_, other, value)| with(&target, other, Some(json!(value))));
        findings(&target)
    });
    assert_eq!(idle.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_setting_without_what_it_depends_on_is_reported_with_that() {
    for (target, expected) in [
        (
            json!({"queue": {"kai": "x"}}),
            "`queue.kai` of target `lab` has no effect with its other settings; it has an effect with `gpu.provider: kai`",
        ),
        (json!({"queue": {"kai": "x", "kueue": "y"}}), "`queue.kai` of target `lab`"),
        (
            json!({"queue": {"priority": "x"}}),
            "`queue.priority` of target `lab` has no effect with its other settings; it has an effect with `queue.kueue: NAME`",
        ),
        (json!({"gpu": {"replicas": 4}}), "`gpu.replicas` of target `lab`"),
        (json!({"gpu": {"provider": "nvidia", "memory_factor": 2}}), "`gpu.memory_factor` of target `lab`"),
        (json!({"gpu": {"provider": "nvidia", "memory_unit": "GiB"}}), "`gpu.memory_unit` of target `lab`"),
        (json!({"gpu": {"provider": "nvidia", "servers": ["a"]}}), "`gpu.servers` of target `lab`"),
        (json!({"gpu": {"provider": "hami", "library": "/x"}}), "`gpu.library` of target `lab`"),
    ] {
        let found = findings(&json!({"backends": ["kubernetes"], "kubernetes": target}));
        assert!(found.iter().any(|found| found.starts_with(expected)), "{target}: {found:#?}");
    }
    let shared = json!({"backends": ["kubernetes"], "kubernetes": {"gpu": {"provider": "aliyun-gpushare", "memory_unit": "GiB"}}});
    assert_eq!(findings(&shared), Vec::<String>::new(), "the default, which another value would change");
    let roles = json!({"train": {"scheduler": "x", "labels": {"a": "b"}}});
    let storage = json!({"scratch": {"claim": {"class": "fast"}}, "corpus": {"pvc": "c"}});
    let by_name = json!({"backends": ["kubernetes"], "kubernetes": {"roles": roles, "storage": storage}});
    assert_eq!(findings(&by_name), Vec::<String>::new());
    let unused = json!({"backends": ["kubernetes"], "kubernetes": {"gpu": {"provider": "rcuda", "servers": ["a@b:0"], "library": "/x"}, "roles": {"train": {"runtime_class": "nvidia"}}}});
    assert_eq!(findings(&unused), Vec::<String>::new());
    let found =
        findings(&json!({"backends": ["oci", "slurm"], "slurm": {"container": "pyxis", "store": "/x"}}));
    let expected = "`store` of target `lab` has no effect with its other settings; it has an effect with `container: jobc`";
    assert_eq!(found, [expected]);
    let maps = json!({"backends": ["oci", "slurm"], "slurm": {"storage": {"corpus": "/mnt/corpus"}}, "oci": {"devices": {"train": [0, 1]}}});
    assert_eq!(findings(&maps), Vec::<String>::new());
    let found = findings(
        &json!({"backends": ["oci", "slurm"], "slurm": {"storage": {"corpus": "/slurm"}}, "oci": {"storage": {"corpus": "/oci"}}}),
    );
    assert_eq!(found, Vec::<String>::new());
}
