//! A plan as the fields of a job file, with their units and without what jobc derives from them.

use std::collections::BTreeMap;

use jobc_schema::plan::{
    CommandPlan, EnvPlan, FileContent, ImagePlan, ImageSource, JobPlan, ParamPlan, Plan, RolePlan, VolumeKind,
};
use jobc_schema::{Bytes, Seconds};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::plan_text::{command, cpus, image, source, text};

/// What jobc derives from other fields.
const DERIVED: [&str; 1] = ["stages"];
const DERIVED_OF_ROLES: [&str; 5] = ["name", "matrix", "launch", "provided_env", "provided_files"];
const DERIVED_OF_RENDEZVOUS: [&str; 3] = ["members", "instances", "world_size"];

/// The fields of a job.
pub(crate) struct Fields {
    pub tree: Value,
    /// The name in the job file of each role, by its name in the plan.
    pub declared: BTreeMap<String, String>,
    /// Whether the job is a combination of a matrix.
    pub is_combination: bool,
}

impl Fields {
    /// The fields of a `plan.json`; nothing if another version of jobc has written it in another form.
    pub(crate) fn of_plan(text: &[u8]) -> Option<Self> {
        let job = serde_json::from_slice::<Plan>(text).ok()?.jobs.into_iter().next()?;
        let declared = job.roles.iter().map(|role| (role.name.clone(), role.declared().to_owned())).collect();
        Some(Self { tree: Value::Object(tree(&job)), declared, is_combination: !job.matrix.is_empty() })
    }
}

fn tree(job: &JobPlan) -> Map<String, Value> {
    let mut tree = object(job, &DERIVED);
    tree.insert(
        "params".to_owned(),
        job.params.iter().map(|(name, value)| (name.clone(), param(value))).collect(),
    );
    tree.remove("target");
    tree.insert("targets".to_owned(), json!({&job.target.name: job.target.settings}));
    if let Some(Value::Object(distributed)) = tree.get_mut("distributed") {
        distributed.retain(|key, _| !DERIVED_OF_RENDEZVOUS.contains(&key.as_str()));
    }
    for key in ["totals", "timeout_seconds"] {
        with_units(&mut tree, key);
    }
    tree.remove("volumes");
    for (name, volume) in &job.volumes {
        let mut fields = object(volume, &["kind"]);
        fields.insert("source".to_owned(), source(&volume.source).into());
        insert(&mut tree, &[kind(volume.kind), name], Value::Object(fields));
    }
    tree.remove("roles");
    for role in &job.roles {
        insert(&mut tree, &["roles", &role.name], Value::Object(fields_of_role(job, role)));
    }
    tree.remove("images");
    for plan in job.images.values() {
        let place: Vec<String> = plan.declared_at.segments().collect();
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        insert(&mut tree, &place, fields_of_image(plan));
    }
    tree
}

fn fields_of_role(job: &JobPlan, role: &RolePlan) -> Map<String, Value> {
    let mut fields = object(role, &DERIVED_OF_ROLES);
    fields.remove("command");
    match &role.command {
        CommandPlan::Argv { setup, .. } => add(&mut fields, "setup", setup.as_ref().map(text)),
        CommandPlan::Script { setup, shell, .. } => {
            add(&mut fields, "setup", setup.as_ref().map(text));
            add(&mut fields, "shell", Some(shell.join(" ")));
        }
        CommandPlan::Image {} | CommandPlan::Args(_) => {}
    }
    add(&mut fields, "run", Some(command(&role.command)));
    let env = role.env.iter().map(|(name, value)| {
        let shown = match value {
            EnvPlan::Text(value) => text(value),
            EnvPlan::Secret { secret } => format!("(secret {secret})"),
        };
        (name.clone(), Value::from(shown))
    });
    fields.insert("env".to_owned(), env.collect());
    // An image of the role itself is inserted where the job file declares it.
    let is_own = |image: &ImagePlan| image.declared_at.as_str() != "/image";
    if role.image == "main" || job.image_of(role).is_some_and(|plan| is_own(plan) && role.image == role.name)
    {
        fields.remove("image");
    }
    for key in ["resources", "ready", "retry", "timeout_seconds", "grace_period_seconds"] {
        with_units(&mut fields, key);
    }
    if let Some(Value::Object(gpu)) = fields.get_mut("resources").and_then(|it| it.get_mut("gpu")) {
        gpu.remove("first");
    }
    fields.remove("ports");
    for port in &role.ports {
        // A number that jobc chose is not the user's.
        let derived: &[&str] = if port.auto { &["label", "number", "shared_base"] } else { &["label"] };
        let place = ["resources", "ports", &port.label];
        insert(&mut fields, &place, Value::Object(object(port, derived)));
    }
    fields.remove("needs");
    for need in &role.needs {
        insert(&mut fields, &["needs", &need.role], Value::Object(object(need, &["role"])));
    }
    fields.remove("mounts");
    for mount in &role.mounts {
        let kind = job.volumes.get(&mount.volume).map_or("data", |volume| kind(volume.kind));
        let mut mounted = object(mount, &["volume", "path"]);
        mounted.insert("mount".to_owned(), mount.path.clone().into());
        insert(&mut fields, &[kind, &mount.volume], Value::Object(mounted));
    }
    fields.remove("files");
    for file in &role.files {
        let mut entry = object(file, &["path"]);
        if let FileContent::Text(content) = &file.content {
            entry.insert("content".to_owned(), text(content).into());
        }
        insert(&mut fields, &["files", &file.path], Value::Object(entry));
    }
    fields
}

fn fields_of_image(plan: &ImagePlan) -> Value {
    match &plan.source {
        ImageSource::Build { .. } | ImageSource::Dockerfile { .. } => {
            Value::Object(object(&plan.source, &["kind"]))
        }
        _ => image(plan).into(),
    }
}

fn param(value: &ParamPlan) -> Value {
    match value {
        ParamPlan::Value(value) => json!(value),
        ParamPlan::Environment { .. } => value.to_string().into(),
    }
}

fn kind(kind: VolumeKind) -> &'static str {
    if kind == VolumeKind::Data { "data" } else { "outputs" }
}

/// The fields of a part of a plan, without some.
fn object(part: &impl Serialize, without: &[&str]) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(part) else { return Map::new() };
    fields.retain(|key, _| !without.contains(&key.as_str()));
    fields
}

fn add(fields: &mut Map<String, Value>, key: &str, value: Option<String>) {
    if let Some(value) = value {
        fields.insert(key.to_owned(), value.into());
    }
}

/// Inserts a value at a path; objects above it that are missing are created.
fn insert(tree: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => drop(tree.insert((*last).to_owned(), value)),
        [first, rest @ ..] => {
            let below = tree.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                insert(below, rest, value);
            }
        }
    }
}

/// An amount with its unit.
type Amount = fn(u64) -> String;

/// Replaces a number by an amount with its unit, and takes the unit out of the name of the field.
fn with_units(fields: &mut Map<String, Value>, key: &str) {
    let Some(mut value) = fields.remove(key) else { return };
    let (name, amount): (&str, Option<Amount>) = match key.rsplit_once('_') {
        Some((name, "bytes")) => (name, Some(bytes)),
        Some((name, "seconds")) => (name, Some(|seconds| Seconds(seconds).to_string())),
        Some((name, "millis")) => (name, Some(cpus)),
        Some((name, "percent")) => (name, Some(|percent| format!("{percent}%"))),
        _ => (key, None),
    };
    match (amount, &mut value) {
        (Some(amount), Value::Number(number)) => {
            value = number.as_u64().map_or(Value::Null, |number| amount(number).into());
        }
        // Huge pages: amounts by the size of the page.
        (Some(amount), Value::Object(entries)) => {
            for entry in entries.values_mut().filter(|entry| entry.is_number()) {
                *entry = entry.as_u64().map_or(Value::Null, |number| amount(number).into());
            }
        }
        (None, Value::Object(inner)) => {
            let keys: Vec<String> = inner.keys().cloned().collect();
            for key in keys {
                with_units(inner, &key);
            }
        }
        _ => {}
    }
    fields.insert(name.to_owned(), value);
}

/// An exact amount: `64 GiB`, `1.5 GiB`, `500 MB`.
pub(super) fn bytes(number: u64) -> String {
    let amount = Bytes(number).amount().to_string();
    let decimal = || {
        let units = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000_u64)];
        let unit = units.iter().find(|(_, factor)| number >= *factor && number.is_multiple_of(*factor));
        unit.map(|(unit, factor)| format!("{} {unit}", number / factor))
    };
    match Bytes::parse(&amount) {
        Ok(Bytes(same)) if same == number => amount,
        _ => decimal().unwrap_or_else(|| Bytes(number).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        let check = |number: u64, shown: &str| assert_eq!(bytes(number), shown);
        check(64 << 30, "64 GiB");
        check(3 << 29, "1.5 GiB");
        check(500_000_000, "500 MB");
        check((1 << 30) + 1, "1073741825 bytes");
        check(0, "0 bytes");
    }

    #[test]
    fn units_move_from_names_to_values() {
        let mut fields = Map::new();
        fields.insert(
            "resources".to_owned(),
            json!({
                "cpu_millis": 1500, "memory_bytes": 1_073_741_824, "hugepages_bytes": {"2MiB": 4_194_304},
                "gpu": {"count": 1, "share": {"cores_percent": 50}}, "io": {"/dev/sda": {"read_bytes": 1_000_000}}
            }),
        );
        fields.insert("timeout_seconds".to_owned(), 3600.into());
        with_units(&mut fields, "resources");
        with_units(&mut fields, "timeout_seconds");
        let expected = json!({
            "resources": {
                "cpu": "1.5", "memory": "1 GiB", "hugepages": {"2MiB": "4 MiB"},
                "gpu": {"count": 1, "share": {"cores": "50%"}}, "io": {"/dev/sda": {"read": "1 MB"}}
            },
            "timeout": "1h"
        });
        assert_eq!(Value::Object(fields), expected);
    }
}
