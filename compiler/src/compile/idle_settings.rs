//! J0437: settings of a target that have no effect with its other settings.
//!
//! No list says which settings belong together, for it would be one more place to forget. The backends are asked: a
//! setting has an effect if the files or findings of some job are different without it, or with another value. The jobs
//! are the [`probes`], which use together what a setting can change.

mod probes;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jobc_schema::target::Target;
use jobc_schema::{BackendName, Pointer, Targets};
use serde_json::{Value as Json, json};

use crate::diagnostic::{Diagnostic, DocumentId, Location, Safety, Sink, codes};
use crate::document::{Document, Node};
use probes::{Probe, Result};

/// The settings of each backend, or of all, and those below that are left out: a build does not write what only findings
/// about a cluster, `jobc submit` or `jobc run` use, and paths of devices are those of jobs.
const BLOCKS: [(&str, Option<BackendName>, &[&str]); 6] = [
    (
        "kubernetes",
        Some(BackendName::Kubernetes),
        &[
            "kubeconfig",
            "context",
            "code_claim",
            "quota",
            "release",
            "jobset",
            "trainer",
            "kuberay",
            "lws",
            "gates",
            "patches",
            "devices",
            "gpu.models",
            "gpu.driver",
            "gpu.others",
        ],
    ),
    ("slurm", Some(BackendName::Slurm), &["release", "max_array", "gpu_types", "gpu_features"]),
    ("openpai", Some(BackendName::Openpai), &["storages", "protocol"]),
    ("cgroup", Some(BackendName::Cgroup), &[]),
    ("oci", Some(BackendName::Oci), &["gpu_share"]),
    ("gpus", None, &[]),
];

/// Settings by the names of jobs, with the names that the probes have.
const BY_NAME: [(&str, &[&str]); 6] = [
    ("kubernetes.roles", &["main", "a", "b", "head", "worker"]),
    ("openpai.roles", &["main", "a", "b", "head", "worker"]),
    ("kubernetes.storage", &["in", "out", "own"]),
    ("slurm.storage", &["in", "out"]),
    ("oci.storage", &["in", "out"]),
    ("oci.devices", &["main", "a", "b", "head", "worker"]),
];

/// How many targets are remembered.
const MAX_KNOWN: usize = 256;

/// Settings on which others depend, with their values.
const CHOICES: [(&str, &[&str]); 5] = [
    ("slurm.container", &["jobc", "pyxis", "oci", "apptainer", "none"]),
    ("kubernetes.queue.kueue", &["NAME"]),
    ("kubernetes.queue.volcano", &["NAME"]),
    (
        "kubernetes.kind",
        &["job", "jobset", "volcano", "pytorchjob", "mpijob", "trainjob", "rayjob", "leaderworkerset"],
    ),
    (
        "kubernetes.gpu.provider",
        &[
            "nvidia",
            "nvidia-time-slicing",
            "nvidia-mps",
            "nvidia-mig-mixed",
            "nvidia-dra",
            "kai",
            "hami",
            "aliyun-gpushare",
            "volcano-gpushare",
            "volcano-vgpu",
            "gpu-manager",
            "rcuda",
            "gvirtus",
            "orion",
            "kubevirt-vgpu",
            "kubevirt-passthrough",
        ],
    ),
];

/// Reports the settings in the file without any effect, of the targets with these names.
pub(super) fn check(targets: &Targets, document: &Document, names: &[&str], sink: &mut Sink) {
    for (name, settings) in targets.targets.iter().filter(|(name, _)| names.contains(&name.as_str())) {
        let Some(node) = document.root.get("targets").and_then(|targets| targets.get(name)) else { continue };
        for (block, backend, outside) in BLOCKS {
            let is_used = backend.is_none_or(|backend| settings.backends.contains(&backend));
            let Some(node) = node.get(block).filter(|_| is_used) else { continue };
            for (path, needed) in known(settings, &readers(settings, backend), &written(block, node, outside))
            {
                sink.push(report(name, &path, &needed));
            }
        }
    }
}

/// The backends that read the settings of a block: on Slurm, bundles have those of `slurm` too.
fn readers(settings: &Target, backend: Option<BackendName>) -> Vec<BackendName> {
    let all = settings.backends.iter().copied();
    all.filter(|other| match backend {
        Some(BackendName::Slurm) => matches!(other, BackendName::Slurm | BackendName::Oci),
        Some(backend) => *other == backend,
        None => !matches!(other, BackendName::Plugin(_)),
    })
    .collect()
}

/// The settings that the file has at or below a node.
fn written(path: &str, node: &Node, outside: &[&str]) -> Vec<String> {
    if node.entries().is_empty() {
        return if path.contains('.') { vec![path.to_owned()] } else { vec![] };
    }
    let below = node.entries().iter().map(|entry| (format!("{path}.{}", entry.key), &entry.value));
    let inside =
        below.filter(|(below, _)| below.split_once('.').is_none_or(|(_, name)| !outside.contains(&name)));
    inside.flat_map(|(below, node)| written(&below, node, outside)).collect()
}

/// The settings without effect, each with those that it needs.
type Idle = Vec<(String, Vec<String>)>;

/// Those of a target. They are found once: an editor checks a job at every key, and its targets stay the same.
fn known(settings: &Target, backends: &[BackendName], paths: &[String]) -> Idle {
    static KNOWN: Mutex<BTreeMap<String, Idle>> = Mutex::new(BTreeMap::new());
    let key = format!("{} {paths:?} {}", json!(backends), json!(settings));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.entry(key).or_insert_with(|| idle(settings, backends, paths)).clone()
}

fn idle(settings: &Target, backends: &[BackendName], paths: &[String]) -> Idle {
    let trial = Trial::new(settings, backends);
    // An error that no job is free of has its own finding.
    if trial.refuses_all() {
        return vec![];
    }
    let idle = paths.iter().filter(|path| !trial.has_effect(path));
    idle.map(|path| (path.clone(), needed(&trial, path))).collect()
}

/// A target, and what the probes become for it: each when it is first compared, because most settings change the first.
struct Trial<'a> {
    target: Target,
    settings: Json,
    backends: &'a [BackendName],
    results: [OnceCell<Vec<Result>>; probes::COUNT],
}

impl<'a> Trial<'a> {
    fn new(target: &Target, backends: &'a [BackendName]) -> Self {
        let settings = serde_json::to_value(target).unwrap_or_default();
        Self {
            target: target.clone(),
            settings,
            backends,
            results: [const { OnceCell::new() }; probes::COUNT],
        }
    }

    /// What the jobs of a probe become.
    fn results(&self, number: usize) -> &[Result] {
        self.results[number].get_or_init(|| lower(number, &self.target, self.backends))
    }

    /// Whether every job has an error.
    fn refuses_all(&self) -> bool {
        (0..probes::COUNT).all(|number| self.results(number).iter().all(Result::is_refused))
    }

    /// Whether something is different without a setting, or with another value.
    fn has_effect(&self, path: &str) -> bool {
        let pointer = format!("/{}", path.replace('.', "/"));
        let Some(value) = self.settings.pointer(&pointer) else { return true };
        let below = |map: &str| {
            let rest = path.strip_prefix(map)?.strip_prefix('.')?;
            Some(rest.split_once('.').unwrap_or((rest, "")))
        };
        if let Some((map, names, (key, below))) =
            BY_NAME.iter().find_map(|(map, names)| Some((*map, *names, below(map)?)))
        {
            return self.has_effect_by_name(map, names, key, below, value);
        }
        others(&self.settings, path, value)
            .is_none_or(|others| others.iter().any(|other| self.differs(other)))
    }

    /// The same for a setting of one role or volume, which those of the probes get.
    fn has_effect_by_name(&self, map: &str, names: &[&str], key: &str, below: &str, value: &Json) -> bool {
        let root = format!("/{}", map.replace('.', "/"));
        let pointer = format!("{root}/{key}");
        let Some(entry) = self.settings.pointer(&pointer) else { return true };
        let spread = |entry: Option<Json>| {
            let all = names.iter().filter_map(|name| Some(((*name).to_owned(), entry.clone()?)));
            with(&self.settings, map, Some(all.collect()))
        };
        let all = spread(Some(entry.clone()));
        // No job of a probe has the names of the file, so these results, which are known, are those without the entry.
        let is_other = |name: &&str| self.settings.pointer(&format!("{root}/{name}")).is_none();
        if below.is_empty() && names.iter().all(is_other) && self.differs(&all) {
            return true;
        }
        let Ok(settings) = serde_json::from_value::<Target>(all) else { return true };
        let base = Self::new(&settings, self.backends);
        // Each of the other values, at the same place of all names.
        let others = match value {
            Json::String(text) if below.is_empty() => vec![None, Some(json!(format!("{text}1")))],
            _ if below.is_empty() => vec![None],
            _ => {
                let place = format!("{map}.{key}.{below}");
                let Some(others) = others(&self.settings, &place, value) else { return true };
                others.iter().map(|settings| settings.pointer(&pointer).cloned()).collect()
            }
        };
        others.into_iter().any(|other| base.differs(&spread(other)))
    }

    /// Whether a probe becomes something else. Settings that are invalid differ as well, for they would be refused.
    fn differs(&self, settings: &Json) -> bool {
        let Ok(settings) = serde_json::from_value::<Target>(settings.clone()) else { return true };
        (0..probes::COUNT).any(|number| lower(number, &settings, self.backends) != self.results(number))
    }
}

fn lower(number: usize, target: &Target, backends: &[BackendName]) -> Vec<Result> {
    Probe::of(number).iter().map(|probe| probe.lower(target, backends)).collect()
}

/// The settings without a value, and with others of its kind: of a word, each that may stand there. None if no other value
/// is known.
fn others(settings: &Json, path: &str, value: &Json) -> Option<Vec<Json>> {
    let mut all = vec![with(settings, path, None)];
    let other = match value {
        Json::Bool(is) => Some(json!(!is)),
        Json::Number(number) => number.as_u64().map(|number| json!(number + 1)),
        Json::String(text) => {
            let changed = with(settings, path, Some(json!(format!("{text}1"))));
            match serde_json::from_value::<Target>(changed.clone()) {
                Ok(_) => all.push(changed),
                Err(error) => {
                    let error = error.to_string();
                    // unknown variant `GiB1`, expected `MiB` or `GiB`
                    let words =
                        error.split_once("expected ").filter(|_| error.starts_with("unknown variant"))?.1;
                    let words = words.split('`').skip(1).step_by(2).filter(|word| word != text);
                    all.extend(words.map(|word| with(settings, path, Some(json!(word)))));
                }
            }
            None
        }
        _ => None,
    };
    all.extend(other.map(|other| with(settings, path, Some(other))));
    Some(all)
}

/// Settings with another value at a path, or without it.
fn with(settings: &Json, path: &str, value: Option<Json>) -> Json {
    let mut changed = settings.clone();
    let mut at = &mut changed;
    let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
    for key in parents.split('.').filter(|key| !key.is_empty()) {
        if at[key].is_null() {
            at[key] = json!({});
        }
        at = &mut at[key];
    }
    match (value, at.as_object_mut()) {
        (Some(value), Some(map)) => drop(map.insert(name.to_owned(), value)),
        (None, Some(map)) => drop(map.remove(name)),
        (_, None) => {}
    }
    changed
}

fn report(target: &str, path: &str, needed: &[String]) -> Diagnostic {
    let pointer = Pointer::ROOT.keys(["targets", target]).keys(path.split('.'));
    let (_, name) = path.split_once('.').unwrap_or_default();
    let message = format!("`{name}` of target `{target}` has no effect with its other settings");
    let place = Location::Entry { document: DocumentId::Targets, pointer: pointer.clone() };
    let needed: Vec<String> = needed.iter().map(|needed| format!("`{needed}`")).collect();
    Diagnostic::warning(codes::IDLE_SETTING, message)
        .at_place(Location::target(&pointer), "")
        .fix(format!("remove `{name}`"), place, "", Safety::Unsafe)
        .note(match &needed[..] {
            [] => "no job becomes anything else by it: remove it".to_owned(),
            needed => format!("it has an effect with {}", needed.join(" or ")),
        })
}

/// The settings with which one would have an effect: two of them at most.
fn needed(trial: &Trial<'_>, path: &str) -> Vec<String> {
    let (block, _) = path.split_once('.').unwrap_or((path, ""));
    let mut found = vec![];
    for (choice, values) in CHOICES.iter().filter(|(choice, _)| choice.starts_with(block) && *choice != path)
    {
        for value in *values {
            let changed = with(&trial.settings, choice, Some(json!(value)));
            let Ok(settings) = serde_json::from_value::<Target>(changed) else { continue };
            let other = Trial::new(&settings, trial.backends);
            if other.refuses_all() || !other.differs(&with(&other.settings, path, None)) {
                continue;
            }
            let (_, name) = choice.split_once('.').unwrap_or_default();
            found.push(format!("{name}: {value}"));
            if found.len() == 2 {
                return found;
            }
        }
        if !found.is_empty() {
            break;
        }
    }
    found
}
