//! The files that are compared.

use std::collections::BTreeSet;

use camino::Utf8Path;
use jobc_compiler::compile::Artifact;
use jobc_compiler::provenance;

use crate::confine;
use crate::input::{InputError, reason};
use crate::output::list;

/// The files of one target of a job.
pub(crate) struct TargetFiles {
    pub job: String,
    pub target: String,
    pub artifacts: Vec<Artifact>,
}

impl TargetFiles {
    /// The files of the same job and target in a directory; none if it was never built.
    pub(crate) fn read(&self, directory: &Utf8Path) -> Result<Self, InputError> {
        let names = if directory.is_dir() { list(directory) } else { Ok(BTreeSet::new()) };
        let cannot = |path: &Utf8Path, error: &std::io::Error| {
            InputError(format!("cannot read `{path}`: {}", reason(error)))
        };
        let mut artifacts = vec![];
        for path in names.map_err(|error| cannot(directory, &error))? {
            let file = directory.join(&path);
            let bytes = confine::permit(&file).and_then(|()| std::fs::read(file));
            let bytes = bytes.map_err(|error| cannot(&path, &error))?;
            // The provenance of files is not part of their content.
            let bytes = provenance::without(&path, &bytes).unwrap_or(bytes);
            artifacts.push(Artifact { path, mode: 0o644, bytes });
        }
        Ok(Self { job: self.job.clone(), target: self.target.clone(), artifacts })
    }
}
