//! What a job was compiled from: the files that were read or looked for, and the variables of the environment.
//!
//! A job is compiled on one thread, so each thread has its own record. Code that reads a file for the compiler records
//! it here immediately with its content: the file may change while the job is compiled.

use std::cell::RefCell;
use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::digest::Digest;
use serde::{Deserialize, Serialize};

thread_local! {
    static RECORD: RefCell<Option<Inputs>> = const { RefCell::new(None) };
}

/// What a job was compiled from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inputs {
    /// By absolute path.
    files: BTreeMap<Utf8PathBuf, FileInput>,
    /// The digests of variables, nothing for unset ones.
    variables: BTreeMap<String, Option<String>>,
    /// Whether an input is not in this record, such as the program of a plug-in, or changed meanwhile.
    is_incomplete: bool,
}

/// The recorded facts of a file; `None` for those not read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct FileInput {
    /// The digest of its content; empty if it could not be read.
    content: Option<String>,
    exists: Option<bool>,
    is_file: Option<bool>,
}

/// Records what a function reads on this thread.
pub(crate) fn record<T>(compile: impl FnOnce() -> T) -> (T, Inputs) {
    RECORD.with_borrow_mut(|record| *record = Some(Inputs::default()));
    let result = compile();
    (result, RECORD.take().unwrap_or_default())
}

/// Notes the content of a file; nothing if it cannot be read.
pub(crate) fn note_content(path: &Utf8Path, bytes: Option<&[u8]>) {
    note(path, |file| replace(&mut file.content, bytes.map_or_else(String::new, digest)));
}

/// Notes whether something is at a path.
pub(crate) fn note_existence(path: &Utf8Path, exists: bool) {
    note(path, |file| replace(&mut file.exists, exists));
}

/// Whether a file is at a path, and notes it.
pub(crate) fn is_file(path: &Utf8Path) -> bool {
    let is_file = path.is_file();
    note(path, |file| replace(&mut file.is_file, is_file));
    is_file
}

/// Notes a variable.
pub(crate) fn note_variable(name: &str, value: Option<&str>) {
    with(|inputs| {
        inputs.variables.insert(name.to_owned(), value.map(|value| digest(value.as_bytes())));
    });
}

/// Notes that something was used that cannot be compared later.
pub(crate) fn note_unknown() {
    with(|inputs| inputs.is_incomplete = true);
}

fn with(change: impl FnOnce(&mut Inputs)) {
    RECORD.with_borrow_mut(|record| {
        if let Some(inputs) = record {
            change(inputs);
        }
    });
}

/// Records a fact about a file; `change` says whether it matches the earlier ones.
fn note(path: &Utf8Path, change: impl FnOnce(&mut FileInput) -> bool) {
    with(|inputs| match absolute(path) {
        Some(path) => {
            let fits = change(inputs.files.entry(path).or_default());
            inputs.is_incomplete |= !fits;
        }
        None => inputs.is_incomplete = true,
    });
}

fn replace<T: PartialEq>(known: &mut Option<T>, new: T) -> bool {
    let fits = known.as_ref().is_none_or(|known| *known == new);
    *known = Some(new);
    fits
}

fn digest(bytes: &[u8]) -> String {
    Digest::of(bytes).hex().to_owned()
}

fn absolute(path: &Utf8Path) -> Option<Utf8PathBuf> {
    Utf8PathBuf::from_path_buf(std::path::absolute(path).ok()?).ok()
}

impl Inputs {
    /// Whether everything that was used is in the record.
    pub(crate) fn is_complete(&self) -> bool {
        !self.is_incomplete && !self.files.is_empty()
    }

    /// Whether a job that is compiled now would read the same.
    pub(crate) fn are_unchanged(&self) -> bool {
        let same_file = |(path, file): (&Utf8PathBuf, &FileInput)| {
            let content = || std::fs::read(path).map_or_else(|_| String::new(), |bytes| digest(&bytes));
            file.exists.is_none_or(|exists| exists == path.exists())
                && file.is_file.is_none_or(|is_file| is_file == path.is_file())
                && file.content.as_ref().is_none_or(|known| *known == content())
        };
        let same_variable = |(name, known): (&String, &Option<String>)| {
            *known == std::env::var(name).ok().map(|value| digest(value.as_bytes()))
        };
        self.is_complete() && self.files.iter().all(same_file) && self.variables.iter().all(same_variable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_detected() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| Utf8Path::from_path(scratch.path()).unwrap().join(name);
        std::fs::write(path("job"), "a").unwrap();
        let ((), inputs) = record(|| {
            note_content(&path("job"), Some(b"a"));
            note_content(&path("missing"), None);
            note_existence(&path("other"), false);
            is_file(&path("directory"));
            note_variable("JOBC_TEST_UNSET", None);
        });
        assert!(inputs.are_unchanged());
        for (name, before, now) in [
            ("job", Some("a"), Some("b")),
            ("job", Some("a"), None),
            ("missing", None, Some("")),
            ("other", None, Some("")),
            ("directory", None, Some("x")),
        ] {
            let write = |text: Option<&str>| match text {
                Some(text) => std::fs::write(path(name), text).unwrap(),
                None => std::fs::remove_file(path(name)).unwrap(),
            };
            write(now);
            assert!(!inputs.are_unchanged(), "{name} {now:?}");
            write(before);
            assert!(inputs.are_unchanged(), "{name} {before:?}");
        }
    }

    #[test]
    fn unrecorded_inputs_make_the_record_incomplete() {
        let path = Utf8Path::new("job.yaml");
        let changed = || {
            note_content(path, Some(b"a"));
            note_content(path, Some(b"b"));
        };
        assert!(!record(changed).1.is_complete());
        let unknown = || {
            note_content(path, Some(b"a"));
            note_unknown();
        };
        assert!(!record(unknown).1.is_complete());
        assert!(!record(|| ()).1.is_complete());
        // Without a record, nothing is noted.
        note_unknown();
        assert!(record(|| note_content(path, Some(b"a"))).1.is_complete());
    }
}
