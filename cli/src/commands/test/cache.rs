//! Results of earlier tests, so that a job whose inputs are the same is not compiled again.
//!
//! An entry means that with these inputs, this program and these golden files, the test passed. Differences and errors
//! are never cached. All of these are compared again, by digest, before an entry is used.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::digest::Digest;
use serde::{Deserialize, Serialize};

use crate::args::TestArgs;
use crate::input::absolute;
use crate::inputs::Inputs;
use crate::output::list;
use crate::platform::{directories, files};

/// The format of entries; entries in other formats are ignored.
const VERSION: u32 = 1;
/// Entries older than this are removed.
const MAX_AGE: Duration = Duration::from_hours(24 * 30);

/// The directory of entries.
pub(super) struct Cache {
    directory: Utf8PathBuf,
    /// The identity of this program: another version may compile differently.
    program: String,
    has_written: AtomicBool,
}

/// A job for a target, and how many files it has.
pub(super) type Known = (String, String, usize);

/// A job that was the same as its golden files.
#[derive(Serialize, Deserialize)]
struct Entry {
    version: u32,
    program: String,
    inputs: Inputs,
    golden: String,
    targets: Vec<Known>,
}

impl Cache {
    /// The user's cache; nothing without a home, or if this program cannot be identified.
    pub(super) fn open() -> Option<Self> {
        let directory = directories::cache()?.join("test");
        let program = std::env::current_exe().ok()?;
        let metadata = program.metadata().ok()?;
        let program =
            format!("{} {} {}", env!("CARGO_PKG_VERSION"), program.display(), files::identity(&metadata));
        Some(Self { directory, program, has_written: AtomicBool::new(false) })
    }

    /// The results of a job file whose inputs and golden files are unchanged since it was the same.
    pub(super) fn get(&self, args: &TestArgs, job: &Utf8Path) -> Option<Vec<Known>> {
        let text = std::fs::read(self.path(args, job)?).ok()?;
        let entry: Entry = serde_json::from_slice(&text).ok()?;
        let is_valid = entry.version == VERSION
            && entry.program == self.program
            && golden(args, job).is_some_and(|golden| golden == entry.golden)
            && entry.inputs.are_unchanged();
        is_valid.then_some(entry.targets)
    }

    /// Caches a passed test. `golden` is the digest of the golden files before the comparison: if they changed
    /// meanwhile, nothing is cached. File system errors are ignored: they only cost time later.
    pub(super) fn put(
        &self,
        args: &TestArgs,
        job: &Utf8Path,
        inputs: Inputs,
        golden: Option<String>,
        targets: Vec<Known>,
    ) {
        let Some(golden) = golden.filter(|before| self::golden(args, job).as_ref() == Some(before)) else {
            return;
        };
        let Some(path) = self.path(args, job).filter(|_| inputs.is_complete()) else { return };
        let entry = Entry { version: VERSION, program: self.program.clone(), inputs, golden, targets };
        let Ok(text) = serde_json::to_vec(&entry) else { return };
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = std::fs::create_dir_all(&self.directory)
            .and_then(|()| std::fs::write(&temporary, text))
            .and_then(|()| std::fs::rename(&temporary, &path));
        match written {
            Ok(()) => self.has_written.store(true, Ordering::Relaxed),
            Err(_) => drop(std::fs::remove_file(&temporary)),
        }
    }

    /// Removes old entries, if there are new ones.
    pub(super) fn clean(&self) {
        if !self.has_written.load(Ordering::Relaxed) {
            return;
        }
        let now = SystemTime::now();
        for entry in self.directory.read_dir_utf8().into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if modified.is_ok_and(|time| now.duration_since(time).is_ok_and(|age| age > MAX_AGE)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// The entry of a job file with these options.
    fn path(&self, args: &TestArgs, job: &Utf8Path) -> Option<Utf8PathBuf> {
        let targets = args.targets.as_deref().map(absolute).transpose().ok()?;
        let key = (absolute(job).ok()?, &args.golden, &args.target, targets, args.allow_lossy, args.locked);
        Some(self.directory.join(format!("{}.json", Digest::of(format!("{key:?}").as_bytes()).hex())))
    }
}

/// The digest of all golden files next to a job file; nothing if they cannot be read.
pub(super) fn golden(args: &TestArgs, job: &Utf8Path) -> Option<String> {
    let directory = if job.is_dir() {
        job
    } else {
        job.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."))
    };
    let directory = directory.join(&args.golden);
    let mut text = String::new();
    for path in list(&directory).ok()? {
        let bytes = std::fs::read(directory.join(&path)).ok()?;
        let _ = writeln!(text, "{} {path:?}", Digest::of(&bytes).hex());
    }
    Some(Digest::of(text.as_bytes()).hex().to_owned())
}
