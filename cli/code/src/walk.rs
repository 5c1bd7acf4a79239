//! The entries of the directory that go with the job.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use jobc_compiler::files::CodeError;
use jobc_dockerfile::ignore::{Ignore, LEFT_OUT};

/// The maximum number of files, directories and links.
pub(crate) const MAX_ENTRIES: usize = 50_000;
/// Files with patterns of what stays here; only the first that exists is read.
const IGNORE_FILES: [&str; 2] = [".jobcignore", ".dockerignore"];

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Directory,
    /// A file with its size in bytes.
    File(u64),
    /// A link with its target.
    Link(PathBuf),
}

/// The files that go with the job.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// By path in the directory, each after the directories above it.
    pub(crate) entries: BTreeMap<PathBuf, Entry>,
    /// What does not, one sentence each.
    pub(crate) remarks: Vec<String>,
}

/// Finds the entries of a directory; stops where there are too many.
pub(crate) fn walk(directory: &Path, shown: &str) -> Result<Tree, CodeError> {
    let status = fs::metadata(directory).map_err(|error| error_at(shown, &describe(&error)))?;
    if !status.is_dir() {
        return Err(error_at(shown, "it is a file"));
    }
    let ignore = read_patterns(directory, shown)?;
    let mut found = Tree::default();
    visit(directory, Path::new(""), &ignore, shown, &mut found)?;
    Ok(found)
}

fn visit(root: &Path, below: &Path, ignore: &Ignore, shown: &str, found: &mut Tree) -> Result<(), CodeError> {
    let failed = |path: &Path, error: &io::Error| unreadable(path, shown, error);
    let entries = fs::read_dir(root.join(below)).map_err(|error| failed(below, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed(below, &error))?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type().map_err(|error| failed(&path, &error))?;
        let excluded = ignore.excludes(&path);
        if kind.is_dir() {
            if !excluded {
                add(found, &path, Entry::Directory);
            }
            if !excluded || ignore.enters(&path) {
                visit(root, &path, ignore, shown, found)?;
            }
        } else if excluded {
            continue;
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).map_err(|error| failed(&path, &error))?;
            if leaves(&path, &target) {
                found.remarks.push(format!(
                    "`{}` is a link to `{}`, outside of the code: it leads nowhere where the job runs",
                    path.display(),
                    target.display()
                ));
            }
            add(found, &path, Entry::Link(target));
        } else if kind.is_file() {
            let bytes = entry.metadata().map_err(|error| failed(&path, &error))?.len();
            add(found, &path, Entry::File(bytes));
        } else {
            found.remarks.push(format!(
                "`{}` does not go with the job: it is neither a file nor a directory nor a link",
                path.display()
            ));
        }
        if found.entries.len() > MAX_ENTRIES {
            return Ok(());
        }
    }
    Ok(())
}

/// Adds an entry, and the directories above it, which a pattern may exclude.
fn add(found: &mut Tree, path: &Path, entry: Entry) {
    for above in path.ancestors().skip(1).filter(|above| *above != Path::new("")) {
        found.entries.entry(above.to_owned()).or_insert(Entry::Directory);
    }
    found.entries.insert(path.to_owned(), entry);
}

/// Whether a link leads out of the directory.
fn leaves(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return true,
        }
    }
    false
}

/// jobc's own patterns, then those of the user.
fn read_patterns(directory: &Path, shown: &str) -> Result<Ignore, CodeError> {
    let mut text: String =
        LEFT_OUT.iter().flat_map(|(_, patterns)| *patterns).map(|line| format!("{line}\n")).collect();
    for name in IGNORE_FILES {
        match fs::read(directory.join(name)) {
            Ok(bytes) => {
                let own = String::from_utf8_lossy(&bytes);
                // An error in it is of this file.
                if let Err(refusals) = Ignore::read(&own) {
                    let why: Vec<String> = refusals.0.iter().map(|refusal| refusal.message.clone()).collect();
                    return Err(CodeError {
                        is_size: false,
                        message: format!("cannot read `{name}` of the code: {}", why.join("; ")),
                        note: "the patterns are those of `.dockerignore`".to_owned(),
                    });
                }
                text.push_str(own.trim_start_matches('\u{feff}'));
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(Path::new(name), shown, &error)),
        }
    }
    Ok(Ignore::read(&text).unwrap_or_default())
}

/// The error for an entry that cannot be read.
pub(crate) fn unreadable(path: &Path, shown: &str, error: &io::Error) -> CodeError {
    let path = if path == Path::new("") { shown.to_owned() } else { path.display().to_string() };
    CodeError {
        is_size: false,
        message: format!("cannot read `{path}` of the code: {}", describe(error)),
        note: "make it readable, or name it in `.jobcignore` if the job does not need it".to_owned(),
    }
}

fn error_at(shown: &str, why: &str) -> CodeError {
    CodeError {
        is_size: false,
        message: format!("cannot read the code in `{shown}`: {why}"),
        note: "name a directory; a path is relative to the directory of the job file".to_owned(),
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
