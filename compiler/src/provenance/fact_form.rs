//! The place of provenance facts in each file format.

use camino::Utf8Path;
use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;
use serde_json::{Map, Value};

use crate::backend::{FilePart, Origin};

use super::{DIGEST, FACTS};

/// The prefix of keys in Kubernetes and of comments.
const PREFIX: &str = "jobc.dev/";
/// The prefix of annotations of OCI bundles.
const OCI_PREFIX: &str = "dev.jobc.";
/// The label of an object with a prefix of the plan's digest, for selectors. `jobc submit` writes the same one.
const PLAN_LABEL: &str = "jobc.dev/plan";
/// The key in `extras` of an OpenPAI job: servers do not change its content.
const EXTRAS: &str = "jobc.dev/provenance";

/// A place for facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactForm {
    /// Labels and annotations of an object. Pod templates get none: controllers reject changes to them, and an object
    /// could not be applied again after a commit.
    Object,
    /// Annotations of config.json. There, the names `org.opencontainers.image.*` would be statements about the image
    /// (image-spec, conversion.md).
    Bundle,
    /// `extras` of an OpenPAI job.
    Extras,
    /// Comments of a batch script.
    Comment,
}

impl FactForm {
    /// The place in a file of a backend; `None` if the format has no place.
    pub(super) fn of(backend: BackendName, path: &Utf8Path) -> Option<Self> {
        let is = |extension: &str| path.extension() == Some(extension);
        match backend {
            BackendName::Kubernetes if is("yaml") => Some(Self::Object),
            BackendName::Oci if path.file_name() == Some("config.json") => Some(Self::Bundle),
            BackendName::Openpai if path == "job.yaml" => Some(Self::Extras),
            BackendName::Slurm if is("sbatch") => Some(Self::Comment),
            _ => None,
        }
    }

    pub(super) fn add(self, value: &mut Value, facts: &[(&'static str, String)]) {
        let prefix = self.prefix();
        let annotations = facts.iter().map(|(name, text)| (format!("{prefix}{name}"), text.as_str().into()));
        match self {
            Self::Object => {
                let Some(metadata) = value.get_mut("metadata") else { return };
                let digest = facts.iter().find(|(name, _)| *name == DIGEST);
                if let (Some((_, digest)), Some(labels)) = (digest, entry(metadata, "labels")) {
                    let hex = digest.trim_start_matches("sha256:");
                    let short = hex.get(..JobPlan::LABEL_LENGTH).unwrap_or(hex);
                    labels.insert(PLAN_LABEL.to_owned(), short.into());
                }
                if let Some(found) = entry(metadata, "annotations") {
                    found.extend(annotations);
                }
            }
            Self::Bundle => {
                if let Some(found) = entry(value, "annotations") {
                    found.extend(annotations);
                }
            }
            Self::Extras => {
                if let Some(extras) = entry(value, "extras") {
                    extras.insert(EXTRAS.to_owned(), annotations.collect::<Map<_, _>>().into());
                }
            }
            Self::Comment => {}
        }
    }

    /// Removes what [`FactForm::add`] adds; returns whether there was anything.
    pub(super) fn remove(self, value: &mut Value) -> bool {
        let prefix = self.prefix();
        let keys = || FACTS.iter().map(|name| format!("{prefix}{name}"));
        match self {
            Self::Object => {
                let Some(metadata) = value.get_mut("metadata") else { return false };
                let is_labeled = remove(metadata, "labels", [PLAN_LABEL.to_owned()].into_iter());
                remove(metadata, "annotations", keys()) | is_labeled
            }
            Self::Bundle => remove(value, "annotations", keys()),
            Self::Extras => remove(value, "extras", [EXTRAS.to_owned()].into_iter()),
            Self::Comment => false,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Bundle => OCI_PREFIX,
            Self::Extras => "",
            Self::Object | Self::Comment => PREFIX,
        }
    }
}

/// The map at a key, created if it is absent; `None` if something else is there.
fn entry<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    value.as_object_mut()?.entry(key).or_insert_with(|| Map::new().into()).as_object_mut()
}

/// Removes entries of the map at a key, and the map if it becomes empty.
fn remove(value: &mut Value, key: &str, names: impl Iterator<Item = String>) -> bool {
    let Some(object) = value.as_object_mut() else { return false };
    let Some(map) = object.get_mut(key).and_then(Value::as_object_mut) else { return false };
    let mut removed = 0;
    for name in names {
        removed += usize::from(map.shift_remove(&name).is_some());
    }
    if removed > 0 && map.is_empty() {
        object.shift_remove(key);
    }
    removed > 0
}

/// Adds a comment for each fact after a script's options; returns the numbers of lines before them and of new lines.
pub(super) fn add_comments(text: &mut String, facts: &[(&'static str, String)]) -> (u32, u32) {
    let header = text.split_inclusive('\n').take_while(|line| line.starts_with('#'));
    let (mut lines, mut length) = (0, 0);
    for line in header {
        (lines, length) = (lines + 1, length + line.len());
    }
    let comments: String = facts.iter().map(|(name, value)| format!("# {PREFIX}{name}: {value}\n")).collect();
    text.insert_str(length, &comments);
    (lines, u32::try_from(facts.len()).unwrap_or(u32::MAX))
}

/// Removes such comments from the header; `None` if it has none.
pub(super) fn remove_comments(text: &str) -> Option<String> {
    let is_fact = |line: &str| {
        let fact = line.strip_prefix("# ").and_then(|line| line.strip_prefix(PREFIX));
        fact.and_then(|fact| fact.split_once(": ")).is_some_and(|(name, _)| FACTS.contains(&name))
    };
    let mut is_header = true;
    let kept: String = text
        .split_inclusive('\n')
        .filter(|line| {
            is_header &= line.starts_with('#');
            !(is_header && is_fact(line))
        })
        .collect();
    (kept.len() < text.len()).then_some(kept)
}

/// Shifts the origins of lines after a line.
pub(super) fn shift(origins: &mut [Origin], behind: u32, by: u32) {
    for origin in origins {
        if let FilePart::Line(line) = &mut origin.part
            && *line > behind
        {
            *line += by;
        }
    }
}
