//! Templates from Git: what each name resolves to now, and its files in the user's cache.
//!
//! A template may use others, which are known after it is fetched. So rounds are repeated until one finds no new names.
//! Findings are at the line of `uses`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{Request, template_references};
use jobc_compiler::diagnostic::{Diagnostic, Sink, codes};
use jobc_compiler::files::Files;
use jobc_compiler::lock::{FILE_NAME, Locked, LockedTemplate};
use jobc_compiler::source::{Sources, Span};
use jobc_compiler::template::{GitReference, MAX_DEPTH, tree};
use jobc_image::build::{PinnedFiles, PinnedRequest};
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::write_atomic::{Durability, write_atomic};

use crate::runtime::interruptible;
use crate::template_cache;

/// A directory that a killed command has left is removed after this time.
const STALE: Duration = Duration::from_hours(24);

/// The job's files, with a lock that is not written yet.
pub(super) struct WithLock<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) text: String,
}

impl Files for WithLock<'_> {
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>> {
        if path == FILE_NAME { Ok(self.text.clone().into_bytes()) } else { self.files.read(path) }
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        path == FILE_NAME || self.files.exists(path)
    }

    fn template(&self, digest: &str) -> io::Result<Vec<u8>> {
        self.files.template(digest)
    }
}

/// Fetches what is not locked or not in the cache, and adds it to the lock; `again` is whether a branch or tag is
/// looked up again. Returns the names that the job uses; `None` after an error, which is in the sink.
pub(super) fn lock(
    request: &Request<'_>,
    sources: &Sources,
    locked: &mut Locked,
    again: &dyn Fn(&str) -> bool,
    sink: &mut Sink,
) -> Option<BTreeSet<String>> {
    let mut used = BTreeSet::new();
    for _ in 0..=MAX_DEPTH {
        let found = references(request, sources, locked);
        let mut is_new = false;
        for (uses, span) in found {
            if !used.insert(uses.clone()) {
                continue;
            }
            is_new = true;
            if let Err(diagnostic) = lock_one(&uses, span, locked, again) {
                sink.push(*diagnostic);
                return None;
            }
        }
        if !is_new {
            return Some(used);
        }
    }
    // The compiler reports templates that use each other too deep.
    Some(used)
}

/// The templates from Git that a job uses, if they are reachable through the lock, with the place of each.
pub(super) fn references(
    request: &Request<'_>,
    sources: &Sources,
    locked: &Locked,
) -> BTreeMap<String, Span> {
    let files = WithLock { files: request.files, text: super::lock_file_text(locked) };
    template_references(&mut sources.clone(), request.job, &files)
}

fn lock_one(
    uses: &str,
    span: Span,
    locked: &mut Locked,
    again: &dyn Fn(&str) -> bool,
) -> std::result::Result<(), Box<Diagnostic>> {
    let at = |message: String, note: Option<String>| {
        let diagnostic = Diagnostic::error(codes::TEMPLATE_NOT_LOCKED, message).at_span(span, "");
        Box::new(note.into_iter().fold(diagnostic, Diagnostic::note))
    };
    // The compiler reports what is wrong with a name.
    let Ok(reference) = GitReference::parse(uses) else { return Ok(()) };
    let before = locked.templates.get(uses).cloned();
    let kept = before.filter(|_| reference.commit().is_some() || !again(uses));
    if kept.as_ref().is_some_and(|entry| is_cached(&entry.digest)) {
        return Ok(());
    }
    let pinned = kept.as_ref().map_or(&*reference.reference, |entry| &entry.commit);
    let failed = |error: Error| {
        at(format!("the template `{uses}` cannot be fetched: {}", error.message()), error.advice())
    };
    let fetched = fetch(&reference, pinned).map_err(failed)?;
    let packed = tree::pack(&fetched.files)
        .map_err(|why| at(format!("the template `{uses}` cannot be used: {why}"), None))?;
    let entry = LockedTemplate { commit: fetched.commit, digest: tree::digest(&packed) };
    if let Some(kept) = kept.filter(|kept| *kept != entry) {
        let message = format!("the files of `{uses}` do not have the digest of {FILE_NAME}");
        let note = format!(
            "commit {} of the repository has {}, {FILE_NAME} has {}; `jobc lock --update` accepts other files of a branch or tag",
            entry.commit, entry.digest, kept.digest
        );
        return Err(at(message, Some(note)));
    }
    store(&entry.digest, &packed).map_err(failed)?;
    locked.templates.insert(uses.to_owned(), entry);
    Ok(())
}

fn is_cached(digest: &str) -> bool {
    template_cache::read(digest).is_ok_and(|bytes| tree::digest(&bytes) == digest)
}

fn fetch(reference: &GitReference, pinned: &str) -> Result<PinnedFiles> {
    let work = WorkDirectory::create()?;
    let request = PinnedRequest {
        url: &reference.url,
        reference: pinned,
        path: &reference.path,
        local: reference.is_local(),
        directory: &work.0,
        max_files: tree::MAX_FILES,
        max_bytes: tree::MAX_BYTES,
    };
    let stopped = AtomicBool::new(false);
    let signals = jobc_sys::signals::Signals::block_forwarded()?;
    let fetched = interruptible::run(
        &signals,
        || PinnedFiles::fetch(request, &stopped),
        |_| stopped.store(true, Ordering::Relaxed),
    )?;
    if stopped.load(Ordering::Relaxed) {
        return Err(Error::new(Kind::State, "canceled"));
    }
    fetched
}

fn cache() -> Result<Utf8PathBuf> {
    let directory = template_cache::directory()
        .ok_or_else(|| Error::new(Kind::State, "the cache directory is not known: set `HOME`"))?;
    std::fs::create_dir_all(&directory).at_path("create", &directory)?;
    Ok(directory)
}

fn store(digest: &str, packed: &[u8]) -> Result<()> {
    cache()?;
    let path = template_cache::file(digest)
        .ok_or_else(|| Error::new(Kind::State, "the cache directory is not known"))?;
    write_atomic(path.as_std_path(), packed, 0o644, Durability::Rename).at_path("write", &path)
}

/// An empty directory in the cache. Dropping it removes it.
struct WorkDirectory(PathBuf);

impl WorkDirectory {
    const PREFIX: &str = "fetch-";

    fn create() -> Result<Self> {
        let cache = cache()?;
        Self::sweep(&cache);
        let name = format!("{}{}", Self::PREFIX, std::process::id());
        let path = cache.join(name).into_std_path_buf();
        // Of a process that had the same PID.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).at_path("create", &path)?;
        Ok(Self(path))
    }

    /// Removes what killed commands have left.
    fn sweep(cache: &Utf8Path) {
        for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
            let is_own = entry.file_name().to_string_lossy().starts_with(Self::PREFIX);
            let changed = entry.metadata().and_then(|data| data.modified());
            let age = changed.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
            if is_own && age.is_some_and(|age| age > STALE) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
