//! The cases of `tests/providers` and `tests/kinds`: a snapshot holds a job, its targets, what the compiler says, and
//! what of the manifests the case is about.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use jobc_compiler::backend::{Content, Losses};
use jobc_compiler::emit::to_yaml;
use jobc_compiler::source::Source;
use serde_json::{Value, json};

use crate::compile::{Arguments, Case, Compilation};
use crate::difference::role_of_pod;
use crate::disk::DiskFiles;
use crate::sections::{section, sections};
use crate::{entries, workspace};

/// A job for a cluster.
pub struct ClusterCase {
    /// The name of the snapshot.
    pub name: String,
    directory: Utf8PathBuf,
    job: String,
    targets: String,
}

/// A file's name, and the object in it.
pub type Manifest = (String, Value);

impl ClusterCase {
    /// The cases of `tests/DIRECTORY`.
    ///
    /// # Panics
    /// On a file that has no section `job.yaml` or `targets.yaml`.
    pub fn all(directory: &str) -> Vec<Self> {
        let directory = workspace().join("tests").join(directory);
        let read = |path: &Utf8PathBuf| {
            assert_eq!(path.extension(), Some("snap"), "{path}: not a snapshot");
            let all =
                sections(&std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}")));
            let text = |name: &str| {
                let found = all.iter().find(|(known, _)| known == name);
                found.unwrap_or_else(|| panic!("{path}: has no `==== {name}`")).1.clone()
            };
            let name = path.file_stem().expect("a file has a name").to_owned();
            Self { name, directory: directory.clone(), job: text("job.yaml"), targets: text("targets.yaml") }
        };
        entries(&directory).iter().map(read).collect()
    }

    /// What the job becomes.
    pub fn compile(&self) -> Compilation {
        compile(&self.job, &self.targets, Losses::Refuse)
    }

    /// What the same job becomes in a cluster without settings, and, if `gpus` is not set, without its GPUs.
    pub fn compile_plain(&self, gpus: bool) -> Compilation {
        let read = |text: &str| serde_yaml::from_str::<Value>(text).expect("a case is YAML");
        let (mut job, mut targets) = (read(&self.job), read(&self.targets));
        job.as_object_mut().expect("a job is a map").shift_remove("gang");
        for role in job["roles"].as_object_mut().expect("a job has roles").values_mut() {
            let resources = role.get_mut("resources").and_then(Value::as_object_mut);
            if let Some(resources) = resources.filter(|_| !gpus) {
                resources.shift_remove("gpu");
            }
        }
        targets["targets"]["lab"]["kubernetes"] = json!({});
        compile(&job.to_string(), &targets.to_string(), Losses::Drop)
    }

    /// Compares with the snapshot: the case, what the compiler says, and the manifests that are given.
    pub fn check(&self, compiled: &Compilation, shown: &[Manifest]) {
        let mut text = section("job.yaml", &self.job) + &section("targets.yaml", &self.targets);
        if !compiled.findings.is_empty() {
            text += &section("short", &compiled.short());
        }
        text.extend(shown.iter().map(|(name, manifest)| section(name, &to_yaml(manifest))));
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&self.directory);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(self.name.as_str(), text));
    }
}

fn compile(job: &str, targets: &str, losses: Losses) -> Compilation {
    Case {
        job: Source::new("job.yaml", job),
        targets: Some(Source::new("targets.yaml", targets)),
        params: vec![],
        arguments: Arguments { losses, ..Arguments::default() },
        files: &DiskFiles(workspace()),
    }
    .compile()
}

/// The manifests of a compilation, in their order.
pub fn manifests(compiled: &Compilation) -> Vec<Manifest> {
    let files = compiled.lowered.iter().flat_map(|(_, outputs)| outputs).flat_map(|output| &output.files);
    let manifest = |file: &jobc_compiler::backend::File| match &file.content {
        Content::Yaml(value) => Some((file.path.to_string(), value.clone())),
        _ => None,
    };
    files.filter_map(manifest).collect()
}

/// The pods of manifests, or their templates, by role.
pub fn pods(manifests: &[Manifest]) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut todo: Vec<&Value> = manifests.iter().map(|(_, value)| value).collect();
    while let Some(value) = todo.pop() {
        found.extend(role_of_pod(value).map(|role| (role.to_owned(), value.clone())));
        match value {
            Value::Object(map) => todo.extend(map.values()),
            Value::Array(items) => todo.extend(items),
            _ => {}
        }
    }
    found
}
