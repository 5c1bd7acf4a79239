//! The source map of a target, as written by a build.

use std::collections::BTreeMap;

use jobc_schema::pointer::unescape;
use serde::Deserialize;

/// The name of the file in a target's directory.
pub const FILE: &str = "sourcemap.json";

/// The origin of each part of each file of a target (docs/reference/plan.md).
#[derive(Debug, Deserialize)]
pub struct SourceMap {
    /// The parts of each file, by its path in the target's directory.
    pub artifacts: BTreeMap<String, Vec<Part>>,
}

/// A part of a file, and its origin: a place of a job file, a setting of the target, or a default.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Part {
    /// The part of a YAML or JSON file.
    pub pointer: Option<String>,
    /// The line of another file.
    pub line: Option<u32>,
    /// The field of the job.
    pub spec: Option<String>,
    /// The file that has the field, without its directory.
    pub file: Option<String>,
    /// The line and column where the field's value begins, from 1.
    pub start: Option<[u32; 2]>,
    /// The line and column after the field's value.
    pub end: Option<[u32; 2]>,
    /// The setting of the target.
    pub target: Option<String>,
    /// The default, in words.
    pub default: Option<String>,
}

impl SourceMap {
    /// Parses a source map.
    ///
    /// # Errors
    /// Fails for a text that is not a source map.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// Formats a JSON Pointer for people: `/roles/train/run` is `roles.train.run`.
pub fn dotted(pointer: &str) -> String {
    pointer.split('/').skip(1).map(unescape).collect::<Vec<_>>().join(".")
}
