//! Sums of discarded files by directory, for people: which directories they know by name, and which files they do not
//! care about.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The discarded files of a task that are worth naming.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discarded {
    /// The largest directories, largest first.
    pub directories: Vec<DirectorySize>,
    /// How many directories there are besides.
    #[serde(default)]
    pub others: u64,
    /// Whether all files were counted; otherwise there are at least that many.
    pub complete: bool,
}

/// The discarded files of a directory, or a single file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectorySize {
    /// Its path in the container.
    pub path: PathBuf,
    /// The sum of the sizes of its files.
    pub bytes: u64,
    /// How many files.
    pub files: u64,
    /// Whether the path is that of a single file, whose directory has more than what was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_file: bool,
}

/// How many directories are named.
const MAX_DIRECTORIES: usize = 5;

/// Directories of temporary files and of files that belong to the system.
const IGNORED_DIRECTORIES: [&str; 9] =
    ["/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var/log", "/var/run", "/var/tmp"];

/// The names of directories that programs fill by themselves, next to what they read.
const IGNORED_NAMES: [&str; 2] = ["__pycache__", ".ipynb_checkpoints"];

/// The endings of files that need not be kept.
const IGNORED_ENDINGS: [&str; 5] = ["lock", "pid", "pyc", "swp", "tmp"];

/// Files of settings and caches are named from that size on: programs write small ones at every start.
const MIN_HIDDEN_BYTES: u64 = 1 << 20;

/// Whether nothing in a directory is worth naming.
pub(super) fn is_ignored_directory(path: &Path) -> bool {
    IGNORED_DIRECTORIES.iter().any(|ignored| path == Path::new(ignored))
        || path.file_name().is_some_and(|name| IGNORED_NAMES.iter().any(|ignored| name == *ignored))
}

/// The sums so far.
#[derive(Debug)]
pub(super) struct Summary<'a> {
    home: Option<&'a Path>,
    /// By the directory that people know.
    groups: BTreeMap<PathBuf, Group>,
}

#[derive(Debug)]
struct Group {
    /// The innermost directory that has all of the files.
    common: PathBuf,
    bytes: u64,
    files: u64,
    is_file: bool,
}

impl<'a> Summary<'a> {
    pub(super) fn new(home: Option<&'a Path>) -> Self {
        Self { home, groups: BTreeMap::new() }
    }

    /// Counts a file. Empty files, such as locks and marks, are not worth naming.
    pub(super) fn add(&mut self, path: &Path, bytes: u64) {
        let ending = path.extension();
        if bytes == 0 || ending.is_some_and(|ending| IGNORED_ENDINGS.iter().any(|ignored| ending == *ignored))
        {
            return;
        }
        let key = self.known_directory(path);
        let is_file = key == path;
        let directory = if is_file { path } else { path.parent().unwrap_or(path) };
        let new = || Group { common: directory.to_owned(), bytes: 0, files: 0, is_file };
        let group = self.groups.entry(key).or_insert_with(new);
        while !directory.starts_with(&group.common) {
            group.common.pop();
        }
        group.bytes += bytes;
        group.files += 1;
    }

    /// The largest directories.
    pub(super) fn finish(self, is_complete: bool) -> Discarded {
        let home = self.home;
        let named = |(key, group): (PathBuf, Group)| {
            let hidden = is_hidden(&key, home);
            // A cache is known by its name, whatever part of it was filled.
            let path = if hidden { key } else { group.common };
            let Group { bytes, files, is_file, .. } = group;
            let size = DirectorySize { path, bytes, files, is_file };
            (!hidden || size.bytes >= MIN_HIDDEN_BYTES).then_some(size)
        };
        let mut directories: Vec<DirectorySize> = self.groups.into_iter().filter_map(named).collect();
        directories.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.path.cmp(&other.path)));
        let others = directories.len().saturating_sub(MAX_DIRECTORIES);
        directories.truncate(MAX_DIRECTORIES);
        Discarded { directories, others: others as u64, complete: is_complete }
    }

    /// The directory by which people know a file: `~/.cache/huggingface`, `~/results`, `/opt/tool`; the file itself if it
    /// is in none.
    fn known_directory(&self, path: &Path) -> PathBuf {
        let (base, depth) = match self.home.and_then(|home| Some((home, path.strip_prefix(home).ok()?))) {
            Some((home, below)) => {
                let first = below.components().next().map(Component::as_os_str);
                let is = |name: &str| first.is_some_and(|first| first == name);
                let depth = if is(".local") {
                    3
                } else if is(".cache") || is(".config") {
                    2
                } else {
                    1
                };
                (home, depth)
            }
            None if path.starts_with("/usr/local") => (Path::new("/usr/local"), 1),
            None => (Path::new("/"), 2),
        };
        let below = path.strip_prefix(base).unwrap_or(path);
        base.join(below.components().take(depth).collect::<PathBuf>())
    }
}

/// Whether a directory has settings or caches: a name in the home directory begins with a dot, or it is below /var.
fn is_hidden(key: &Path, home: Option<&Path>) -> bool {
    let below = home.and_then(|home| key.strip_prefix(home).ok());
    match below {
        Some(below) => below.as_os_str().as_encoded_bytes().starts_with(b"."),
        None => key.starts_with("/var"),
    }
}
