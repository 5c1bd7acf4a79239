//! Names of backends: those of jobc, and plug-ins.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BackendName {
    /// Dockerfiles of the images that the job builds.
    Dockerfile,
    /// One OCI bundle per task.
    Oci,
    /// Cgroup v1 and v2 files and systemd properties, one set per task.
    Cgroup,
    /// Kubernetes manifests.
    Kubernetes,
    /// An OpenPAI protocol v2 job.
    Openpai,
    /// Slurm batch scripts.
    Slurm,
    /// The output of a plug-in.
    Plugin(PluginName),
}

/// The name of a plug-in: lower-case letters, digits and `-`, at most 40 characters. Copies share its text, which is
/// never freed: there are only as many as distinct names in the user's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginName(&'static str);

/// The pattern of names, which is that of targets.
const PATTERN: &str = "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$";

impl BackendName {
    /// The backends of jobc in the order they are written.
    pub const ALL: [Self; 6] =
        [Self::Dockerfile, Self::Oci, Self::Cgroup, Self::Kubernetes, Self::Openpai, Self::Slurm];

    /// The name as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dockerfile => "dockerfile",
            Self::Oci => "oci",
            Self::Cgroup => "cgroup",
            Self::Kubernetes => "kubernetes",
            Self::Openpai => "openpai",
            Self::Slurm => "slurm",
            Self::Plugin(name) => name.0,
        }
    }

    /// Whether a plug-in writes it.
    pub fn is_plugin(self) -> bool {
        matches!(self, Self::Plugin(_))
    }

    fn about(self) -> &'static str {
        match self {
            Self::Dockerfile => "Dockerfiles of the images that the job builds.",
            Self::Oci => "One OCI bundle per task.",
            Self::Cgroup => "Cgroup v1 and v2 files and systemd properties, one set per task.",
            Self::Kubernetes => "Kubernetes manifests.",
            Self::Openpai => "An OpenPAI protocol v2 job.",
            Self::Slurm => "Slurm batch scripts.",
            Self::Plugin(_) => "The output of a plug-in.",
        }
    }
}

impl PluginName {
    /// A name as text.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    fn intern(name: &str) -> Self {
        static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return Self(known);
        }
        let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
        names.insert(kept);
        Self(kept)
    }
}

/// The error for text that is not the name of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendNameError;

impl std::fmt::Display for BackendNameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a backend has a name of lower-case letters, digits and `-`, at most 40 characters")
    }
}

impl std::error::Error for BackendNameError {}

impl FromStr for BackendName {
    type Err = BackendNameError;

    fn from_str(text: &str) -> Result<Self, BackendNameError> {
        if let Some(known) = Self::ALL.into_iter().find(|name| name.as_str() == text) {
            return Ok(known);
        }
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=40).contains(&text.len())
            && text.bytes().all(is_inner)
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && !text.ends_with('-');
        if fits { Ok(Self::Plugin(PluginName::intern(text))) } else { Err(BackendNameError) }
    }
}

impl std::fmt::Display for BackendName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for BackendName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for BackendName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for BackendName {
    fn schema_name() -> Cow<'static, str> {
        "BackendName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut options: Vec<Schema> = Self::ALL
            .into_iter()
            .map(|name| json_schema!({"description": name.about(), "type": "string", "const": name.as_str()}))
            .collect();
        options.push(json_schema!({
            "description": "A plug-in: the program `jobc-backend-NAME`, or templates in the directory `backends/NAME`.",
            "type": "string",
            "pattern": PATTERN,
        }));
        json_schema!({"description": "An output format.", "anyOf": options})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in ["oci", "compose", "a", "x-1"] {
            let parsed: BackendName = name.parse().unwrap();
            assert_eq!((parsed.as_str(), parsed.is_plugin()), (name, name != "oci"));
            assert_eq!(name.parse(), Ok(parsed));
            assert_eq!(
                serde_json::from_str::<BackendName>(&serde_json::to_string(&parsed).unwrap()).unwrap(),
                parsed
            );
        }
        for name in ["", "Compose", "-a", "a-", "a_b", "a/b", "..", &"a".repeat(41)] {
            assert_eq!(name.parse::<BackendName>(), Err(BackendNameError), "{name}");
        }
    }
}
