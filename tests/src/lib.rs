//! What the tests of the whole compiler share: compiling a directory as the command line does, and reading the pages
//! of the diagnostic codes.
//!
//! The tests themselves lie in `tests/`: `errors.rs` (cases and pages of every code), `examples.rs` (golden output),
//! `frozen.rs` (what version 1 means), `mutation.rs` (unknown keys), `openpai.rs` (other people's jobs, there and
//! back), `imports/` (who imports whom). `oracles/` asks other people's programs, `bench/` measures, `soak/` swaps for
//! long.
#![forbid(unsafe_code)]

pub mod cases;
pub mod clusters;
pub mod compile;
pub mod difference;
pub mod disk;
pub mod leaves;
pub mod page;
pub mod sections;

use camino::{Utf8Path, Utf8PathBuf};

/// The root of the workspace.
pub fn workspace() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies in the workspace").to_owned()
}

/// The entries of a directory, sorted by name.
///
/// # Panics
/// If the directory cannot be read: a test without its cases would pass for nothing.
pub fn entries(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    let read = directory.read_dir_utf8().unwrap_or_else(|error| panic!("{directory}: {error}"));
    let mut paths: Vec<Utf8PathBuf> = read.map(|entry| entry.expect("an entry").into_path()).collect();
    paths.sort();
    paths
}

/// The job file of a directory: `job.yaml` or `job.json`.
pub fn job_file(directory: &Utf8Path) -> Option<Utf8PathBuf> {
    ["job.yaml", "job.json"].iter().map(|name| directory.join(name)).find(|path| path.is_file())
}

/// The directories of `examples/` and `examples/templates/` that hold a job file.
///
/// # Panics
/// If there is none.
pub fn examples() -> Vec<Utf8PathBuf> {
    let examples = workspace().join("examples");
    let mut found = entries(&examples);
    found.extend(entries(&examples.join("templates")));
    found.retain(|path| job_file(path).is_some());
    assert!(!found.is_empty(), "no directory under examples/ holds a job file");
    found
}
