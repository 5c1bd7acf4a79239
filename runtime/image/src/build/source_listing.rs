//! The sources of `COPY`: files of a tree, found below a file descriptor and nowhere else.
//!
//! A source is a path, or a pattern whose path components match single names (Go's `filepath.Match`, which BuildKit
//! uses). Links on the way to it, and a link that it names, are followed as a process with that root would follow them,
//! so that none leads out; a link below a directory is copied as a link. The listing is sorted by name, regardless of
//! the file system's order.
//!
//! With `--parents`, `**` matches any number of directories, and a `/./` in a source marks where the directories begin
//! that the target gets too.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat};
use rustix::io::Errno;

use jobc_dockerfile::glob;
use jobc_dockerfile::ignore::Ignore;
use jobc_schema::digest::Hasher;
use jobc_sys::open_inside::open_inside;

/// Something that a source names, with all that is below it.
#[derive(Clone, Debug)]
pub(super) struct SourceListing {
    /// Its path from the root of the tree as the source has it: its last component is its name in a directory.
    pub(super) path: PathBuf,
    /// Itself, and what is below it, each after the directory it is in.
    pub(super) entries: Vec<Entry>,
    /// With `--parents`: the directories that lead to it, itself included if it is one, from the pivot on. Their paths
    /// begin at the pivot.
    pub(super) parents: Vec<Entry>,
}

/// A file, directory, link or node.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Its path below what was found, empty for that itself.
    pub(super) path: PathBuf,
    /// Its type and content.
    pub(super) status: Stat,
}

impl Entry {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.status.st_mode)
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind() == FileType::Directory
    }
}

impl SourceListing {
    /// Itself.
    pub(super) fn is_directory(&self) -> bool {
        self.entries.first().is_some_and(Entry::is_directory)
    }

    /// The directory before the first of its parents.
    pub(super) fn pivot(&self) -> PathBuf {
        let below = self.parents.len() + usize::from(!self.is_directory());
        let above = self.path.components().count().saturating_sub(below);
        self.path.components().take(above).collect()
    }

    /// The name it has in a directory.
    pub(super) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Opens one of its files for reading.
    pub(super) fn open(&self, tree: &OwnedFd, entry: &Entry) -> io::Result<OwnedFd> {
        let below = if entry.path.as_os_str().is_empty() { OFlags::empty() } else { OFlags::NOFOLLOW };
        let path = c_path(&self.path.join(&entry.path))?;
        Ok(open_inside(tree, &path, OFlags::RDONLY | OFlags::NONBLOCK | below)?)
    }

    /// Leaves out what `--exclude` names: paths below a directory, or a file's own name. Says whether anything is left.
    pub(super) fn exclude(&mut self, patterns: &Ignore) -> bool {
        if patterns.is_empty() {
            return true;
        }
        if !self.is_directory() {
            return !patterns.excludes(self.name().as_ref());
        }
        // From the end, so that a directory stays where something in it does.
        let mut needed = std::collections::HashSet::new();
        let mut kept: Vec<Entry> = Vec::new();
        for entry in self.entries.drain(..).rev() {
            let itself = entry.path.as_os_str().is_empty();
            if itself || needed.contains(&entry.path) || !patterns.excludes(&entry.path) {
                needed.extend(entry.path.parent().map(Path::to_owned));
                kept.push(entry);
            }
        }
        kept.reverse();
        self.entries = kept;
        true
    }

    /// Adds what distinguishes this listing from another: names and the result of stat(2) for each, including the times
    /// of the content.
    pub(super) fn add_to_digest(&self, hasher: &mut Hasher) {
        let pivot = self.pivot();
        let parents = self.parents.iter().map(|Entry { path, status }| (pivot.join(path), status));
        let entries = self.entries.iter().map(|Entry { path, status }| (self.path.join(path), status));
        for (path, status) in parents.chain(entries) {
            hasher.update(path.as_os_str().as_bytes());
            hasher.update(&[0]);
            hasher.update(
                &identity(status).iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>(),
            );
        }
    }
}

/// Attributes that change if a file is replaced or modified: device, number, kind and bits, size, times.
pub(super) fn identity(status: &Stat) -> [u64; 8] {
    #[allow(clippy::cast_sign_loss)] // Only compared.
    [
        status.st_dev,
        status.st_ino,
        u64::from(status.st_mode),
        status.st_size as u64,
        status.st_mtime as u64,
        status.st_mtime_nsec,
        status.st_ctime as u64,
        status.st_ctime_nsec,
    ]
}

/// All files of a source, in order; empty if a pattern matches nothing.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] where a path without a pattern does not exist, or is not taken.
pub(super) fn find(
    tree: &OwnedFd,
    source: &str,
    ignore: &Ignore,
    with_parents: bool,
) -> io::Result<Vec<SourceListing>> {
    let (before, after) = match source.split_once("/./") {
        Some((before, after)) if with_parents => (before, after),
        _ => ("", source),
    };
    let pivot = names_of(before).count();
    let names: Vec<&str> = names_of(before).chain(names_of(after)).collect();
    let mut paths = vec![PathBuf::new()];
    let mut pattern = false;
    for (index, name) in names.iter().enumerate() {
        if *name == "**" && with_parents && index + 1 < names.len() {
            pattern = true;
            let mut all = Vec::new();
            for path in &paths {
                directories_below(tree, path, ignore, &mut all)?;
            }
            paths = all;
        } else if *name == ".." {
            // Above the root is the root.
            for path in &mut paths {
                let _ = path.pop();
            }
        } else if name.contains(['*', '?', '[']) {
            pattern = true;
            let last = index + 1 == names.len();
            paths = paths
                .iter()
                .map(|path| matches(tree, path, name, ignore, last))
                .collect::<io::Result<Vec<_>>>()?
                .concat();
        } else {
            let name = unescape(name);
            for path in &mut paths {
                path.push(&name);
            }
        }
    }
    // Several `**` find a path several times.
    paths.sort();
    paths.dedup();
    let mut found = Vec::new();
    for path in paths {
        match entries(tree, &path, ignore) {
            Ok(entries) => {
                let parents = if with_parents { parents(tree, &path, &entries, pivot)? } else { Vec::new() };
                found.push(SourceListing { path, entries, parents });
            }
            Err(error) if pattern && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The names of a source's path.
fn names_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

/// The directories after the first `pivot` ones that lead to what was found.
fn parents(tree: &OwnedFd, path: &Path, entries: &[Entry], pivot: usize) -> io::Result<Vec<Entry>> {
    let directory = if entries.first().is_some_and(Entry::is_directory) { Some(path) } else { path.parent() };
    let components: Vec<Component<'_>> = directory.into_iter().flat_map(Path::components).collect();
    let pivot = pivot.min(components.len());
    let mut parents = Vec::new();
    for end in pivot + 1..=components.len() {
        let whole: PathBuf = components[..end].iter().collect();
        let open = open_inside(tree, &c_path(&whole)?, OFlags::PATH | OFlags::DIRECTORY)?;
        let path = components[pivot..end].iter().collect();
        parents.push(Entry { path, status: rustix::fs::fstat(&open)? });
    }
    Ok(parents)
}

/// A directory and all directories below it, for `**`; links are not followed.
fn directories_below(
    tree: &OwnedFd,
    directory: &Path,
    ignore: &Ignore,
    list: &mut Vec<PathBuf>,
) -> io::Result<()> {
    let entries = match entries(tree, directory, ignore) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        other => other?,
    };
    list.extend(entries.iter().filter(|entry| entry.is_directory()).map(|entry| directory.join(&entry.path)));
    Ok(())
}

fn unescape(name: &str) -> String {
    let mut characters = name.chars();
    let mut plain = String::new();
    while let Some(c) = characters.next() {
        plain.push(if c == '\\' { characters.next().unwrap_or(c) } else { c });
    }
    plain
}

/// The matches of a pattern in a directory.
fn matches(
    tree: &OwnedFd,
    directory: &Path,
    pattern: &str,
    ignore: &Ignore,
    last: bool,
) -> io::Result<Vec<PathBuf>> {
    let open = match open_inside(tree, &c_path(directory)?, OFlags::RDONLY | OFlags::DIRECTORY) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for name in names(&open)? {
        let path = directory.join(&name);
        // A name that is not UTF-8 matches what any character matches.
        if glob::matches(pattern, &name.to_string_lossy())
            && (!last || !ignore.excludes(&path) || ignore.enters(&path))
        {
            found.push(path);
        }
    }
    Ok(found)
}

fn entries(tree: &OwnedFd, path: &Path, ignore: &Ignore) -> io::Result<Vec<Entry>> {
    let open = open_inside(tree, &c_path(path)?, OFlags::PATH)?;
    let status = rustix::fs::fstat(&open)?;
    let directory = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
    let taken = path.as_os_str().is_empty() || !ignore.excludes(path);
    if !(taken || directory && ignore.enters(path)) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut entries = vec![Entry { path: PathBuf::new(), status }];
    if directory {
        let readable = open_inside(tree, &c_path(path)?, OFlags::RDONLY | OFlags::DIRECTORY)?;
        walk(&readable, path, Path::new(""), ignore, &mut entries)?;
        if !taken && entries.len() == 1 {
            return Err(io::ErrorKind::NotFound.into());
        }
    }
    Ok(entries)
}

/// Lists what is in a directory: `path` leads to what was found, `below` from there to the directory.
fn walk(
    directory: &OwnedFd,
    path: &Path,
    below: &Path,
    ignore: &Ignore,
    list: &mut Vec<Entry>,
) -> io::Result<()> {
    for name in names(directory)? {
        let below = below.join(&name);
        let whole = path.join(&below);
        let name = CString::new(name.into_vec())?;
        let status = match rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            // Gone since the directory was read.
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        let kind = FileType::from_raw_mode(status.st_mode);
        let taken = !ignore.excludes(&whole);
        if kind == FileType::Socket || !(taken || kind == FileType::Directory && ignore.enters(&whole)) {
            continue;
        }
        let at = list.len();
        list.push(Entry { path: below.clone(), status });
        if kind == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let inner = rustix::fs::openat(directory, &name, flags, rustix::fs::Mode::empty())
                .map_err(|errno| with_path(errno.into(), &whole))?;
            walk(&inner, path, &below, ignore, list)?;
            if !taken && list.len() == at + 1 {
                list.pop();
            }
        }
    }
    Ok(())
}

/// The names in a directory, in order.
fn names(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    names.sort();
    Ok(names)
}

/// An error with the path it is about.
#[allow(clippy::needless_pass_by_value)] // It is the argument of `map_err`.
pub(super) fn with_path(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {}", path.display(), jobc_sys::error::describe_io(&error)))
}

/// A path below a tree, for syscalls; `.` for the tree itself.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    let plain = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    let plain: PathBuf = plain.collect();
    let bytes = if plain.as_os_str().is_empty() { b".".to_vec() } else { plain.into_os_string().into_vec() };
    Ok(CString::new(bytes)?)
}

#[cfg(test)]
mod tests;
