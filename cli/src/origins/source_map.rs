//! `sourcemap.json` as a build has written it.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

use crate::input::{InputError, absolute, read};

/// The name of the file in the directory of a target.
pub(crate) const FILE: &str = "sourcemap.json";

/// Where each part of each file of a target comes from (docs/reference/plan.md).
#[derive(Debug, Deserialize)]
pub(crate) struct SourceMap {
    /// The parts of each file, by its path in the target's directory.
    pub artifacts: BTreeMap<String, Vec<Part>>,
}

/// A part of a file, and its origin: a place of a job file, a setting of the target, or a default.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct Part {
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
    /// The setting of the target.
    pub target: Option<String>,
    /// The default, in words.
    pub default: Option<String>,
}

impl SourceMap {
    /// The source map of the directory that a file was built into, and that directory; nothing for other files.
    ///
    /// # Errors
    /// A source map that cannot be read.
    pub(crate) fn above(file: &Utf8Path) -> Result<Option<(Utf8PathBuf, Self)>, InputError> {
        let file = absolute(file.parent().filter(|p| !p.as_str().is_empty()).unwrap_or(Utf8Path::new(".")))
            .unwrap_or_default();
        let Some(directory) = file.ancestors().find(|directory| directory.join(FILE).is_file()) else {
            return Ok(None);
        };
        let path = directory.join(FILE);
        let map = Self::parse(&read(&path)?).map_err(|error| {
            InputError(format!("`{path}` is not a source map: {error}; build the job again"))
        })?;
        Ok(Some((directory.to_owned(), map)))
    }

    /// Reads the text of a source map.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// A JSON Pointer as a path of keys, for people: `/roles/train/run` is `roles.train.run`.
pub(crate) fn dotted(pointer: &str) -> String {
    let keys: Vec<String> =
        pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect();
    keys.join(".")
}
