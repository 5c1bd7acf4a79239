//! Systems and terms that people search for: `stdlib/systems.yaml`.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::load;

pub(super) static SYSTEMS: LazyLock<Systems> =
    LazyLock::new(|| load(include_str!(concat!(env!("OUT_DIR"), "/systems.json"))));

/// The whole table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Systems {
    /// The content of the file.
    pub schema: String,
    /// The rows.
    pub systems: Vec<System>,
}

/// A system or term, and what jobc offers for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Its name.
    pub name: String,
    /// Other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// A short description.
    pub about: String,
    /// How well jobc supports it.
    pub verdict: SystemVerdict,
    /// How, or the nearest equivalent, or why not.
    pub answer: String,
    /// The same in Chinese.
    pub zh: String,
    /// The providers of GPUs that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
}

/// The level of support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemVerdict {
    /// jobc supports it.
    Works,
    /// Another feature of jobc serves the purpose.
    Nearest,
    /// Not possible.
    No,
}

impl SystemVerdict {
    /// Its name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Nearest => "nearest",
            Self::No => "no",
        }
    }
}

/// All rows, in table order.
pub fn all() -> &'static [System] {
    &SYSTEMS.systems
}

/// The row of a name; case, `-`, `_` and blanks do not matter.
pub fn find(name: &str) -> Option<&'static System> {
    let wanted = folded(name);
    all().iter().find(|system| system.names().any(|name| folded(name) == wanted))
}

impl System {
    /// All its names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.aliases).map(String::as_str)
    }
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stdlib::providers;

    #[test]
    fn every_name_is_in_one_row() {
        for system in all() {
            for name in system.names() {
                assert_eq!(find(name).map(|row| &row.name), Some(&system.name), "{name}");
            }
            for name in &system.providers {
                assert!(providers::all().iter().any(|row| row.name == *name), "{name}");
                let named = system.answer.contains(&format!("`{name}`"))
                    || system.answer.contains(&format!("provider: {name}"));
                assert!(named || matches!(name.as_str(), "nvidia" | "antman" | "openpai-hived"), "{name}");
            }
        }
        assert_eq!(find("GVTg").map(|row| &*row.name), Some("GVT-g"));
        assert_eq!(find("vCUDA").map(|row| &*row.name), Some("GaiaGPU"));
        assert_eq!(find("nothing"), None);
    }
}
