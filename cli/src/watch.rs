//! `--watch`: repeats a command when one of its input files changes.
//!
//! The files are looked at a few times a second. inotify(7) reports nothing that another host writes to a network file
//! system, which is where many jobs live, nor what changes below a bind mount of a virtual machine.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::plural;

use crate::outcome::Outcome;
use crate::terminal;

/// How often files are looked at.
pub(crate) const INTERVAL: Duration = Duration::from_millis(250);

/// Editors write a file in several steps; it has changed when it stays the same for this long.
const SETTLED: Duration = Duration::from_millis(100);

/// Maximum number of changes to wait for.
const MAX_STEPS: usize = 50;

/// The files read since [`start`]; none where nothing is watched.
static READ: Mutex<Option<WatchedFiles>> = Mutex::new(None);

/// The state of a file when it was read; `None` if it did not exist.
type State = Option<(SystemTime, u64)>;

/// Files with their recorded states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchedFiles(BTreeMap<Utf8PathBuf, State>);

impl WatchedFiles {
    /// Adds a file or a directory as it is now; the first state counts.
    pub(crate) fn add(&mut self, path: &Utf8Path) {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), state(path));
        }
    }

    /// The first one that has changed, been removed or appeared.
    pub(crate) fn changed(&self) -> Option<&Utf8Path> {
        self.0.iter().find(|(path, before)| state(path) != **before).map(|(path, _)| path.as_path())
    }

    /// How many of them exist.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().filter(|(path, state)| state.is_some() && !path.is_dir()).count()
    }
}

fn state(path: &Utf8Path) -> State {
    let metadata = path.metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Notes that a file is read, or looked for. Does nothing unless something is watched.
pub(crate) fn note(path: &Utf8Path) {
    if let Some(files) = READ.lock().unwrap_or_else(std::sync::PoisonError::into_inner).as_mut() {
        files.add(path);
    }
}

/// Starts to note files.
pub(crate) fn start() {
    *READ.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(WatchedFiles::default());
}

/// The files noted since [`start`].
pub(crate) fn files() -> WatchedFiles {
    READ.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take().unwrap_or_default()
}

/// Waits until a file that has changed is written.
pub(crate) fn settle(path: &Utf8Path) {
    for _ in 0..MAX_STEPS {
        let before = state(path);
        std::thread::sleep(SETTLED);
        if state(path) == before {
            return;
        }
    }
}

/// Does the work forever: immediately, and again whenever an input file has changed; `shorten` makes paths for
/// messages. A signal ends it.
pub(crate) fn repeat(work: impl Fn() -> Outcome, shorten: fn(&Utf8Path) -> Utf8PathBuf) -> ! {
    loop {
        start();
        let _ = work();
        let files = files();
        terminal::eprint(&waiting_message(files.count()));
        let changed = loop {
            std::thread::sleep(INTERVAL);
            if let Some(path) = files.changed() {
                break path.to_owned();
            }
        };
        settle(&changed);
        terminal::eprint(&format!("\njobc: `{}` changed\n", shorten(&changed)));
    }
}

/// What is printed while nothing happens.
pub(crate) fn waiting_message(files: usize) -> String {
    let files = plural(files, "file");
    format!("jobc: waiting for changes of {files}; Ctrl-C ends\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_new_and_removed_files_are_detected() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| Utf8PathBuf::from_path_buf(directory.path().join(name)).expect("UTF-8");
        std::fs::write(at("job.yaml"), "a").expect("written");
        let mut files = WatchedFiles::default();
        files.add(&at("job.yaml"));
        files.add(&at("targets.yaml"));
        assert_eq!((files.changed(), files.count()), (None, 1));
        std::fs::write(at("targets.yaml"), "").expect("written");
        assert_eq!(files.changed(), Some(&*at("targets.yaml")));
        std::fs::remove_file(at("targets.yaml")).expect("removed");
        assert_eq!(files.changed(), None);
        std::fs::write(at("job.yaml"), "ab").expect("written");
        assert_eq!(files.changed(), Some(&*at("job.yaml")));
        std::fs::remove_file(at("job.yaml")).expect("removed");
        assert_eq!((files.changed(), files.count()), (Some(&*at("job.yaml")), 1));
    }

    #[test]
    fn files_are_noted_only_when_watched() {
        note(Utf8Path::new("/a"));
        assert_eq!(files(), WatchedFiles::default());
        start();
        note(Utf8Path::new("/a"));
        assert_eq!(files().0.len(), 1);
    }
}
