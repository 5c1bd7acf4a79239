//! The frozen jobs: each means to this program what it meant on the day it was frozen.
//!
//! A file of `tests/frozen/` holds a job, the files beside it and, in `plan`, what the job means. Nothing writes these
//! files, `JOBC_UPDATE` and `INSTA_UPDATE` included: version 1 keeps its meaning, as docs/stability.md promises. Another
//! meaning is another version of the format; a new field is a new file here.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::plan_json;
use jobc_compiler::diagnostic::Severity;
use jobc_compiler::source::Source;
use jobc_schema::{JOB_SCHEMA, Plan, TARGETS_SCHEMA};
use jobc_tests::compile::{Arguments, Case};
use jobc_tests::disk::DiskFiles;
use jobc_tests::sections::sections;
use jobc_tests::{entries, workspace};
use serde_json::Value;
use tempfile::TempDir;

/// The frozen files with the FNV-1a of their bytes: none may be edited. Add a line for a new one.
const FROZEN: &[(&str, u64)] = &[
    ("distributed", 0x0f41_e5a7_2007_31bf),
    ("images", 0x5274_446f_efe6_9146),
    ("mpi", 0x8db4_2ca4_50fa_6c57),
    ("openpai", 0xda4d_92bb_e121_cc53),
    ("order", 0x19c2_261a_c661_aeb4),
    ("resources", 0x13d1_bf6a_e19d_f1cb),
    ("roles", 0x64d1_b60b_3ecc_5c77),
    ("storage", 0xa175_df93_f9a1_3cdd),
    ("sweep", 0xddfc_4776_ee39_cd61),
    ("targets", 0x252a_77e7_7c1d_a43f),
    ("template", 0x6d65_cd5a_f091_fc73),
];

/// What plans have for every job since the set was frozen: the key, and the value, in JSON, that means what its absence
/// meant.
const ADDED: &[(&str, &str)] = &[];

/// Fields without a meaning of their own in a plan, by type and name, each with the reason.
const NOT_IN_PLANS: &[(&str, &str, &str)] = &[
    ("ParamRules", "type", "rejects other values"),
    ("ParamRules", "choices", "rejects other values"),
    ("ParamRules", "min", "rejects other values"),
    ("ParamRules", "max", "rejects other values"),
    ("ParamRules", "description", "is for people"),
];

struct Frozen {
    name: String,
    job: String,
    targets: Option<String>,
    target: Vec<String>,
    plan: Value,
    files: DiskFiles,
    _directory: TempDir,
}

fn frozen() -> Vec<Frozen> {
    entries(&workspace().join("tests/frozen")).iter().map(|path| unpack(path)).collect()
}

fn unpack(path: &Utf8Path) -> Frozen {
    let text = std::fs::read_to_string(path).expect("a frozen job is UTF-8");
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = Utf8PathBuf::try_from(temporary.path().to_owned()).expect("a UTF-8 path");
    let (mut job, mut targets, mut target, mut plan) = (None, None, Vec::new(), None);
    for (name, text) in sections(&text) {
        match name.as_str() {
            "job.yaml" => job = Some(text),
            "targets.yaml" => targets = Some(text),
            "target" => target.push(text.trim().to_owned()),
            // A new file has none until its test has printed it.
            "plan" if text.trim().is_empty() => plan = Some(Value::Null),
            "plan" => plan = Some(serde_json::from_str(&text).expect("a plan is JSON")),
            file => {
                let file = directory.join(file);
                std::fs::create_dir_all(file.parent().expect("a directory"))
                    .expect("the directory can be made");
                std::fs::write(file, text).expect("the file can be written");
            }
        }
    }
    Frozen {
        name: path.file_stem().expect("a file has a name").to_owned(),
        job: job.expect("a frozen job has `==== job.yaml`"),
        targets,
        target,
        plan: plan.expect("a frozen job has `==== plan`"),
        files: DiskFiles(directory),
        _directory: temporary,
    }
}

impl Frozen {
    /// What a job means with the files of this one; the errors where it means nothing.
    fn meaning(&self, job: &str, targets: Option<&str>) -> Result<Value, String> {
        let case = Case {
            job: Source::new("job.yaml", job.to_owned()),
            targets: targets.map(|text| Source::new("targets.yaml", text.to_owned())),
            params: Vec::new(),
            arguments: Arguments { targets: self.target.clone(), ..Arguments::default() },
            files: &self.files,
        };
        let (jobs, findings) = case.plan();
        let errors: Vec<_> = findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
        let Some(jobs) = jobs.filter(|_| errors.is_empty()) else { return Err(format!("{errors:#?}")) };
        let text = plan_json(&Plan { version: 1, jobs });
        let mut plan = serde_json::from_str(&text).expect("a plan is JSON");
        keep_meaning(&mut plan);
        Ok(plan)
    }
}

/// Removes what version 1 does not promise: the tags of built images, the digest of code, and which `JOBC_*` variables a
/// task has whose job does not ask for all.
fn keep_meaning(plan: &mut Value) {
    for job in plan["jobs"].as_array_mut().into_iter().flatten() {
        for image in job["images"].as_object_mut().into_iter().flat_map(|images| images.values_mut()) {
            if ["build", "dockerfile"].iter().any(|kind| image["source"]["kind"] == *kind) {
                remove(image, "reference");
            }
        }
        for volume in values(job, "volumes") {
            if volume["source"]["kind"] == "code" {
                remove(&mut volume["source"], "digest");
            }
        }
        let all = job
            .get("compat")
            .is_some_and(|compat| compat.as_array().is_some_and(|c| c.contains(&"jobc".into())));
        for role in job["roles"].as_array_mut().into_iter().flatten().filter(|_| !all) {
            if let Some(Value::Object(variables)) = role.get_mut("provided_env") {
                variables.retain(|name, _| !name.starts_with("JOBC_"));
                if variables.is_empty() {
                    remove(role, "provided_env");
                }
            }
        }
    }
}

fn values<'a>(value: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    value.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut())
}

fn remove(value: &mut Value, key: &str) {
    value.as_object_mut().map(|map| map.remove(key));
}

/// Where two plans differ, a line for each place.
fn differences(place: &str, then: Option<&Value>, now: Option<&Value>, found: &mut Vec<String>) {
    match (then, now) {
        (then, now) if then == now => {}
        (Some(Value::Object(then)), Some(Value::Object(now))) => {
            let keys: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
            for key in keys {
                let added = ADDED.iter().any(|(name, value)| {
                    name == key
                        && !then.contains_key(key)
                        && now[key] == serde_json::from_str::<Value>(value).expect("JSON")
                });
                if !added {
                    differences(&format!("{place}/{key}"), then.get(key), now.get(key), found);
                }
            }
        }
        (Some(Value::Array(then)), Some(Value::Array(now))) if then.len() == now.len() => {
            for (index, (then, now)) in then.iter().zip(now).enumerate() {
                differences(&format!("{place}/{index}"), Some(then), Some(now), found);
            }
        }
        (then, now) => {
            let text =
                |value: Option<&Value>| value.map_or("nothing".to_owned(), |value| format!("{value:#}"));
            found.push(format!("{place}: was {}, is {}", text(then), text(now)));
        }
    }
}

#[test]
fn a_frozen_job_keeps_its_meaning() {
    let mut wrong = Vec::new();
    for frozen in frozen() {
        match frozen.meaning(&frozen.job, frozen.targets.as_deref()) {
            Ok(plan) => {
                differences(
                    &format!("{}.frozen: ", frozen.name),
                    Some(&frozen.plan),
                    Some(&plan),
                    &mut wrong,
                );
            }
            Err(errors) => wrong.push(format!("{}.frozen is rejected: {errors}", frozen.name)),
        }
    }
    assert!(
        wrong.is_empty(),
        "a job of version 1 means something else (docs/stability.md); change the program, not tests/frozen:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_frozen_job_is_not_edited() {
    let hash = |bytes: Vec<u8>| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
    };
    let files = entries(&workspace().join("tests/frozen"));
    let found: Vec<(&str, u64)> = files
        .iter()
        .map(|path| (path.file_stem().expect("a name"), hash(std::fs::read(path).expect("a frozen job"))))
        .collect();
    let gone = FROZEN.iter().filter(|(name, _)| !found.iter().any(|(file, _)| file == name));
    let edited =
        found.iter().filter(|(file, hash)| FROZEN.iter().any(|(name, known)| name == file && known != hash));
    let names: Vec<&str> = gone.chain(edited).map(|(name, _)| *name).collect();
    assert!(
        names.is_empty(),
        "tests/frozen keeps what version 1 meant; restore {names:?}, and write a new file"
    );
    let new: Vec<String> = found
        .iter()
        .filter(|(file, _)| !FROZEN.iter().any(|(name, _)| name == file))
        .map(|(file, hash)| {
            let part = |shift: u32| (hash >> shift) & 0xffff;
            let (a, b, c, d) = (part(48), part(32), part(16), part(0));
            format!("    (\"{file}\", 0x{a:04x}_{b:04x}_{c:04x}_{d:04x}),")
        })
        .collect();
    assert!(new.is_empty(), "add to `FROZEN`:\n{}", new.join("\n"));
}

#[test]
fn another_version_of_a_format_is_refused() {
    for frozen in frozen() {
        let other = |text: &str| text.replacen("version: 1", "version: 2", 1);
        let targets = frozen.targets.as_deref();
        assert!(
            frozen.meaning(&other(&frozen.job), targets).is_err_and(|errors| errors.contains("version 1"))
        );
        if let Some(targets) = targets {
            let errors = frozen.meaning(&frozen.job, Some(&other(targets)));
            assert!(errors.is_err_and(|errors| errors.contains("version 1")));
        }
        let mut plan = frozen.plan.clone();
        plan["version"] = 2.into();
        let error = serde_json::from_value::<Plan>(plan).expect_err("version 2").to_string();
        assert!(error.contains("this one reads version 1"), "{error}");
    }
}

/// A field in a document: its type, its name, and the keys and indices that lead to it.
type Field = (String, String, Vec<Value>);

/// The fields of a value, as a schema names them.
fn fields<'a>(
    schema: &'a Value,
    mut node: &'a Value,
    mut kind: String,
    value: &Value,
    at: &[Value],
    found: &mut Vec<Field>,
) {
    if let Some(name) = node["$ref"].as_str() {
        kind = name.trim_start_matches("#/$defs/").to_owned();
        node = &schema["$defs"][&kind];
    }
    for branch in node["anyOf"].as_array().into_iter().flatten() {
        if accepts(schema, branch, value) {
            fields(schema, branch, kind.clone(), value, at, found);
        }
    }
    let below = |key: Value| [at, &[key]].concat();
    for (key, value) in value.as_object().into_iter().flatten() {
        if let Some(property) = node["properties"].get(key) {
            found.push((kind.clone(), key.clone(), below(key.as_str().into())));
            fields(schema, property, kind.clone(), value, &below(key.as_str().into()), found);
        } else {
            fields(
                schema,
                &node["additionalProperties"],
                kind.clone(),
                value,
                &below(key.as_str().into()),
                found,
            );
        }
    }
    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
        fields(schema, &node["items"], kind.clone(), value, &below(index.into()), found);
    }
}

/// Whether a branch of a schema is the one for a map or list.
fn accepts(schema: &Value, branch: &Value, value: &Value) -> bool {
    let branch =
        branch["$ref"].as_str().map_or(branch, |name| &schema["$defs"][name.trim_start_matches("#/$defs/")]);
    let nested =
        branch["anyOf"].as_array().into_iter().flatten().any(|branch| accepts(schema, branch, value));
    let keys = |map: &serde_json::Map<String, Value>| match branch["properties"].as_object() {
        Some(properties) => map.keys().all(|key| properties.contains_key(key)),
        None => branch["additionalProperties"].is_object(),
    };
    nested || value.as_object().is_some_and(keys) || value.is_array() && branch["items"].is_object()
}

/// The document without one field.
fn without(document: &Value, at: &[Value]) -> String {
    let mut document = document.clone();
    let (last, path) = at.split_last().expect("a field has a place");
    let step = |value: &'_ Value| {
        value.as_str().map_or_else(
            || format!("/{value}"),
            |key| format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        )
    };
    let pointer: String = path.iter().map(step).collect();
    remove(document.pointer_mut(&pointer).expect("the field's map"), last.as_str().expect("a key"));
    document.to_string()
}

/// The name of the type that a schema refers to.
fn type_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// A field whose value the plan does not have is not frozen: without it the job must mean something else.
#[test]
fn every_field_of_version_1_is_frozen() {
    let schemas =
        [JOB_SCHEMA, TARGETS_SCHEMA].map(|text| serde_json::from_str::<Value>(text).expect("a schema"));
    let (mut met, mut decided) = ([BTreeSet::new(), BTreeSet::new()], [BTreeSet::new(), BTreeSet::new()]);
    for frozen in frozen() {
        let job: Value = serde_yaml::from_str(&frozen.job).expect("a job is YAML");
        let targets: Option<Value> =
            frozen.targets.as_deref().map(|text| serde_yaml::from_str(text).expect("YAML"));
        let as_json = targets.as_ref().map(Value::to_string);
        let whole = frozen.meaning(&job.to_string(), as_json.as_deref()).expect("the same as JSON");
        for (number, document) in [Some(&job), targets.as_ref()].into_iter().enumerate() {
            let (Some(document), mut found) = (document, Vec::new()) else { continue };
            fields(&schemas[number], &schemas[number], String::new(), document, &[], &mut found);
            for (kind, field, at) in found {
                let name = (kind, field);
                let less = without(document, &at);
                let changes = |less: &str| {
                    let (job, targets) = if number == 0 {
                        (less.to_owned(), as_json.clone())
                    } else {
                        (job.to_string(), Some(less.to_owned()))
                    };
                    frozen.meaning(&job, targets.as_deref()).ok().as_ref() != Some(&whole)
                };
                if !decided[number].contains(&name) && changes(&less) {
                    decided[number].insert(name.clone());
                }
                met[number].insert(name);
            }
        }
    }
    let mut wrong = Vec::new();
    for (number, schema) in schemas.iter().enumerate() {
        let types =
            schema["$defs"].as_object().expect("types").iter().map(|(name, kind)| (name.as_str(), kind));
        let is_preview =
            |field: &Value| field["description"].as_str().is_some_and(|text| text.starts_with("[preview]"));
        let fields = schema["$defs"].as_object().into_iter().flatten().map(|(_, kind)| kind).chain([schema]);
        // A type of a preview is a preview too.
        let previews: BTreeSet<&str> = fields
            .flat_map(|kind| kind["properties"].as_object().into_iter().flatten())
            .filter(|(_, field)| is_preview(field))
            .flat_map(|(_, field)| [field, &field["items"], &field["additionalProperties"]])
            .filter_map(type_of)
            .flat_map(|name| {
                let branches = schema["$defs"][name]["anyOf"].as_array();
                branches.into_iter().flatten().filter_map(type_of).chain([name])
            })
            .collect();
        for (name, kind) in
            [("", schema)].into_iter().chain(types).filter(|(name, _)| !previews.contains(name))
        {
            for (field, property) in kind["properties"].as_object().into_iter().flatten() {
                if is_preview(property) {
                    continue;
                }
                let key = (name.to_owned(), field.clone());
                let exempt = NOT_IN_PLANS.iter().any(|(kind, known, _)| *kind == name && known == field);
                if !met[number].contains(&key) {
                    wrong.push(format!("`{name}.{field}` is in no job of tests/frozen"));
                } else if decided[number].contains(&key) == exempt {
                    wrong.push(format!(
                        "`{name}.{field}` changes nothing in the plan, or is in NOT_IN_PLANS and does"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
