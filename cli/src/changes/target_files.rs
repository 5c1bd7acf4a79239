//! The files that are compared.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Artifact;
use jobc_compiler::provenance;

use crate::confine;
use crate::input::{InputError, reason};
use crate::output::list;

use super::compare::PLAN;

/// The files of one target of a job.
pub(crate) struct TargetFiles {
    pub job: String,
    pub target: String,
    pub artifacts: Vec<Artifact>,
}

/// A directory of a target, with the names in its plan.
pub(crate) struct BuiltTarget {
    pub job: String,
    pub target: String,
    pub directory: Utf8PathBuf,
}

/// The depth of the directories of targets below a directory of built files: `<job>/<target>`.
const MAX_DEPTH: usize = 2;

impl BuiltTarget {
    /// The targets in a directory that `jobc build` has written, by name; none in other directories.
    pub(crate) fn below(directory: &Utf8Path) -> Vec<Self> {
        let mut all = vec![];
        let mut todo = vec![(directory.to_owned(), 0)];
        while let Some((directory, depth)) = todo.pop() {
            if let Some((job, target)) = names(&directory) {
                all.push(Self { job, target, directory });
            } else if depth < MAX_DEPTH {
                let entries = directory.read_dir_utf8().into_iter().flatten().flatten();
                todo.extend(
                    entries.filter(|it| it.path().is_dir()).map(|it| (it.path().to_owned(), depth + 1)),
                );
            }
        }
        all.sort_by(|a, b| (&a.job, &a.target).cmp(&(&b.job, &b.target)));
        all
    }

    /// Its files.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn read(&self) -> Result<TargetFiles, InputError> {
        read(Some(&self.directory), &self.job, &self.target)
    }
}

impl TargetFiles {
    /// The files of the same job and target in a directory; none if it was never built.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn read(&self, directory: Option<&Utf8Path>) -> Result<Self, InputError> {
        read(directory, &self.job, &self.target)
    }

    /// Removes steps up to parent directories, as if the directory of the target were less deep.
    pub(crate) fn raise(&mut self, levels: usize) {
        let artifacts = self.artifacts.iter_mut().filter(|artifact| artifact.path != PLAN);
        for artifact in artifacts {
            if let Some(raised) = raised(&artifact.bytes, levels) {
                artifact.bytes = raised;
            }
        }
    }
}

/// The name of the job and of the target of a directory with a plan.
fn names(directory: &Utf8Path) -> Option<(String, String)> {
    let path = directory.join(PLAN);
    let text = confine::permit(&path).and_then(|()| std::fs::read(&path)).ok()?;
    let plan: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let job = &plan["jobs"][0];
    Some((job["name"].as_str()?.to_owned(), job["target"]["name"].as_str()?.to_owned()))
}

fn read(directory: Option<&Utf8Path>, job: &str, target: &str) -> Result<TargetFiles, InputError> {
    let mut files = TargetFiles { job: job.to_owned(), target: target.to_owned(), artifacts: vec![] };
    let Some(directory) = directory.filter(|directory| directory.is_dir()) else { return Ok(files) };
    let cannot = |path: &Utf8Path, error: &std::io::Error| {
        InputError(format!("cannot read `{path}`: {}", reason(error)))
    };
    for path in list(directory).map_err(|error| cannot(directory, &error))? {
        let file = directory.join(&path);
        let bytes = confine::permit(&file).and_then(|()| std::fs::read(file));
        let bytes = bytes.map_err(|error| cannot(&path, &error))?;
        // The provenance of files is not part of their content.
        let bytes = provenance::without(&path, &bytes).unwrap_or(bytes);
        files.artifacts.push(Artifact { path, mode: 0o644, bytes });
    }
    Ok(files)
}

/// The text with fewer steps in each path that leaves the directory of the target; nothing if it has none.
fn raised(text: &[u8], levels: usize) -> Option<Vec<u8>> {
    const UP: &str = "../";
    let text = std::str::from_utf8(text).ok()?;
    let long = UP.repeat(levels + 2);
    if !text.contains(&long) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(&long) {
        out += &rest[..start];
        let run = rest[start..].len() - rest[start..].trim_start_matches(UP).len();
        out += &rest[start + UP.len() * levels..start + run];
        rest = &rest[start + run..];
    }
    out += rest;
    Some(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_steps() {
        let check = |text: &str, levels: usize, expected: Option<&str>| {
            let raised = raised(text.as_bytes(), levels).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(raised.as_deref(), expected, "{text}");
        };
        check("a ../../../../x ../y ../../../../../z", 1, Some("a ../../../x ../y ../../../../z"));
        check("../../../../x", 2, Some("../../x"));
        check("../../x", 1, None);
    }
}
