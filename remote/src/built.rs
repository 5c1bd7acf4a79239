//! The output of `jobc build` for a target: the plan, the manifests, and the source map.

mod scripts;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jobc_schema::plan::{CODE_ARCHIVE, JobPlan, Plan};
use jobc_schema::{Pointer, pointer};
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::yaml;
use serde::Deserialize;
use serde_json::Value;

pub use scripts::BatchScript;

/// A built directory.
#[derive(Clone, Debug)]
pub struct BuiltDirectory {
    /// The plan of the job.
    pub plan: JobPlan,
    /// The manifests for Kubernetes in the order to apply.
    pub manifests: Vec<Manifest>,
    /// The batch scripts for Slurm, each after those it waits for.
    pub scripts: Vec<BatchScript>,
    /// All files, where they are sent as they are: for Slurm and for hosts.
    pub files: Vec<BuiltFile>,
    /// The archive with the code, if it is for a claim on Kubernetes.
    pub code: Option<Vec<u8>>,
}

/// A file of a built directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltFile {
    /// Its path in the directory.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A manifest of a built directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Its path in the directory.
    pub path: String,
    /// The object.
    pub object: Value,
    /// Where its fields come from.
    origins: Vec<Part>,
}

#[derive(Deserialize)]
struct SourceMap {
    artifacts: BTreeMap<String, Vec<Part>>,
}

/// An entry of the source map.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Part {
    pointer: Option<String>,
    line: Option<u32>,
    file: Option<String>,
    start: Option<(u32, u32)>,
    target: Option<String>,
}

impl BuiltDirectory {
    /// Reads the directory of a target.
    ///
    /// # Errors
    ///
    /// It is not one that `jobc build` wrote for one job.
    pub fn read(directory: &Path) -> Result<Self> {
        let below = directory.join("kubernetes");
        let mut entries: Vec<PathBuf> = if below.is_dir() {
            fs::read_dir(&below)
                .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
                .at_path("read the manifests in", &below)?
        } else {
            vec![]
        };
        entries.retain(|path| path.extension().is_some_and(|end| end == "yaml"));
        let own = ["plan.json", "sourcemap.json"].map(|name| directory.join(name));
        let mut files = Vec::new();
        let code = Some(below.join(CODE_ARCHIVE)).filter(|path| path.is_file());
        for path in own.into_iter().chain(entries).chain(code) {
            let bytes = fs::read(&path).at_path("read", &path)?;
            let name = path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
            files.push((name, bytes));
        }
        Self::of_files(files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])))
            .map_err(|error| error.under(format_args!("`{}`", directory.display())))
    }

    /// The same, of files in memory, each with its path in the directory.
    ///
    /// # Errors
    ///
    /// They are not what `jobc build` writes for one job.
    pub fn of_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Self> {
        let files: BTreeMap<&str, &[u8]> = files.into_iter().collect();
        let wrong = |path: &str, why: &dyn std::fmt::Display| {
            Error::new(Kind::Config, format!("`{path}` is not what `jobc build` writes: {why}"))
        };
        let file = |name: &'static str| {
            files
                .get(name)
                .copied()
                .ok_or_else(|| wrong(name, &"it does not exist"))
                .map(|bytes| (name, bytes))
        };
        let (path, plan) = file("plan.json")?;
        let plan: Plan = serde_json::from_slice(plan).map_err(|error| wrong(path, &error))?;
        let [plan] = <[JobPlan; 1]>::try_from(plan.jobs)
            .map_err(|jobs| wrong(path, &format!("it has {} jobs, not one", jobs.len())))?;
        let (path, map) = file("sourcemap.json")?;
        let mut map: SourceMap = serde_json::from_slice(map).map_err(|error| wrong(path, &error))?;
        let (mut manifests, mut scripts, mut code) = (Vec::new(), Vec::new(), None);
        let has_bundles = files.keys().any(|path| path.starts_with("oci/"));
        for (path, bytes) in files {
            if path.ends_with(CODE_ARCHIVE) {
                if path.starts_with("kubernetes/") {
                    code = Some(bytes.to_vec());
                }
                continue;
            }
            if path.starts_with("slurm/") {
                let text = std::str::from_utf8(bytes).map_err(|error| wrong(path, &error))?;
                let origins = map.artifacts.remove(path).unwrap_or_default();
                scripts.extend(BatchScript::of_file(path, text, origins));
                continue;
            }
            let below = path.strip_prefix("kubernetes/").and_then(|name| name.strip_suffix(".yaml"));
            if below.is_none_or(|name| name.contains('/')) {
                continue;
            }
            let text = std::str::from_utf8(bytes).map_err(|error| wrong(path, &error))?;
            let object = yaml::read(text).map_err(|why| wrong(path, &why))?;
            let origins = map.artifacts.remove(path).unwrap_or_default();
            manifests.push(Manifest { path: path.to_owned(), object, origins });
        }
        if manifests.is_empty() && scripts.is_empty() && !has_bundles {
            let message =
                "it has nothing to submit; build it with the backend `kubernetes`, `slurm` or `oci`";
            return Err(Error::new(Kind::Config, message));
        }
        Ok(Self { plan, manifests, scripts: scripts::ordered(scripts)?, files: vec![], code })
    }

    /// The same, with all files and their permissions, for what is sent as it is.
    ///
    /// # Errors
    ///
    /// They are not what `jobc build` writes for one job.
    pub fn of_artifacts<'a>(
        files: impl IntoIterator<Item = (&'a str, u32, &'a [u8])> + Clone,
    ) -> Result<Self> {
        let mut built = Self::of_files(files.clone().into_iter().map(|(path, _, bytes)| (path, bytes)))?;
        let file = |(path, mode, bytes): (&str, u32, &[u8])| BuiltFile {
            path: path.to_owned(),
            mode,
            bytes: bytes.to_vec(),
        };
        if built.manifests.is_empty() {
            built.files = files.into_iter().map(file).collect();
        }
        Ok(built)
    }
}

impl BuiltDirectory {
    /// Where the image of a container comes from.
    pub fn origin_of_image(&self, reference: &str) -> Option<String> {
        self.manifests.iter().find_map(|manifest| {
            pod_specs(&manifest.object).into_iter().find_map(|(at, spec)| {
                let containers = spec.get("containers")?.as_array()?;
                let has_image =
                    |container: &Value| container.get("image").and_then(Value::as_str) == Some(reference);
                let index = containers.iter().position(has_image)?;
                manifest.origin(&format!("{at}/containers/{index}/image"))
            })
        })
    }

    /// Whether an object refers to the Secret of that name.
    pub fn uses_secret(&self, name: &str) -> bool {
        self.manifests.iter().any(|manifest| {
            pod_specs(&manifest.object).iter().any(|(_, spec)| {
                let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
                volumes.filter_map(|volume| volume.pointer("/secret/secretName")).any(|found| found == name)
            })
        })
    }
}

impl Manifest {
    /// A manifest without a source map.
    pub fn new(path: &str, object: Value) -> Self {
        Self { path: path.to_owned(), object, origins: vec![] }
    }

    /// A manifest with the entries of its source map, for tests.
    #[cfg(test)]
    pub(crate) fn with_origins(path: &str, object: Value, origins: Value) -> serde_json::Result<Self> {
        Ok(Self { path: path.to_owned(), object, origins: serde_json::from_value(origins)? })
    }

    /// A text field of the object, by JSON Pointer; empty if it is absent.
    pub fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Where a field comes from: `job.yaml:11:3`, or the setting of the target.
    ///
    /// A field that the map does not have comes from where the nearest field above it does; of a field that only has
    /// fields below it, the first one is taken.
    pub fn origin(&self, pointer: &str) -> Option<String> {
        let mut at = pointer;
        loop {
            if let Some(place) = self.origins.iter().find_map(|part| part.place_at(at)) {
                return Some(place);
            }
            match at.rfind('/') {
                Some(end) => at = &at[..end],
                None => break,
            }
        }
        let below = format!("{pointer}/");
        let is_below = |part: &&Part| part.pointer.as_ref().is_some_and(|at| at.starts_with(&below));
        self.origins.iter().filter(is_below).find_map(Part::place)
    }

    /// The JSON Pointer of a field as Kubernetes writes it: `spec.containers[0].resources.limits[nvidia.com/gpu]`. A key
    /// in brackets can be quoted.
    pub fn pointer(&self, field: &str) -> String {
        let mut pointer = Pointer::ROOT;
        let mut rest = field.trim_start_matches('.');
        while !rest.is_empty() {
            if let Some((inner, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                let inner = inner.trim_matches(['"', '\'']);
                // A merge key of a list, as in `containers[name="main"]`.
                let keyed = inner.split_once('=').and_then(|(key, value)| {
                    let list = self.object.pointer(pointer.as_str())?.as_array()?;
                    let value = value.trim_matches('"');
                    list.iter().position(|item| item.get(key).and_then(Value::as_str) == Some(value))
                });
                pointer = match keyed {
                    Some(index) => pointer.index(index),
                    None => pointer.key(inner),
                };
                rest = after.trim_start_matches('.');
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                pointer = pointer.key(&rest[..end]);
                rest = rest[end..].trim_start_matches('.');
            }
        }
        pointer.into_string()
    }
}

/// The pod templates of an object, with their JSON Pointers.
pub fn pod_specs(object: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let mut todo = vec![(String::new(), object)];
    while let Some((at, value)) = todo.pop() {
        match value {
            Value::Object(map) if map.get("containers").is_some_and(Value::is_array) => {
                found.push((at, value));
            }
            Value::Object(map) => {
                todo.extend(map.iter().map(|(key, value)| (format!("{at}/{}", pointer::escape(key)), value)));
            }
            Value::Array(list) => {
                todo.extend(list.iter().enumerate().map(|(index, value)| (format!("{at}/{index}"), value)));
            }
            _ => {}
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

impl Part {
    fn place_at(&self, pointer: &str) -> Option<String> {
        (self.pointer.as_deref() == Some(pointer)).then(|| self.place()).flatten()
    }

    fn place(&self) -> Option<String> {
        match (&self.file, self.start, &self.target) {
            (Some(file), Some((line, column)), _) => Some(format!("{file}:{line}:{column}")),
            (_, _, Some(setting)) => Some(format!(
                "the setting `{}` of the target",
                setting.trim_start_matches('/').replace('/', ".")
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest() -> Manifest {
        let object = json!({"spec": {"containers": [{"name": "side"}, {"name": "main", "image": "x"}]}});
        let origins = json!([
            {"pointer": "/spec/containers/1/image", "spec": "/image", "file": "job.yaml", "start": [3, 8], "end": [3, 9]},
            {"pointer": "/spec/containers/1/resources/limits/nvidia.com~1gpu", "file": "job.yaml", "start": [7, 2]},
            {"pointer": "/metadata/namespace", "target": "/kubernetes/namespace"},
        ]);
        Manifest { path: "x".to_owned(), object, origins: serde_json::from_value(origins).unwrap() }
    }

    #[test]
    fn fields_of_kubernetes_lead_to_lines_of_the_job() {
        let manifest = manifest();
        for (field, place) in [
            ("spec.containers[1].image", Some("job.yaml:3:8")),
            (r#".spec.containers[name="main"].image"#, Some("job.yaml:3:8")),
            ("spec.containers[1].resources.limits[nvidia.com/gpu]", Some("job.yaml:7:2")),
            ("spec.containers[1].resources", Some("job.yaml:7:2")),
            ("metadata.namespace", Some("the setting `kubernetes.namespace` of the target")),
            ("status", None),
        ] {
            assert_eq!(manifest.origin(&manifest.pointer(field)).as_deref(), place, "{field}");
        }
    }
}
