//! A few small files of one commit, read out of a repository without checking anything out.
//!
//! Since nothing is checked out, no link is followed and no filter, hook or submodule of the repository runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jobc_dockerfile::is_commit;
use jobc_sys::error::{Error, Kind, Result};

use super::choose;
use super::command::{Git, Limits};
use super::environment::Settings;

/// The requested files of a repository.
#[derive(Clone, Copy, Debug)]
pub struct PinnedRequest<'a> {
    /// The repository: `https://`, `ssh://`, or with [`PinnedRequest::local`] `file://`.
    pub url: &'a str,
    /// A commit, a branch or a tag; it does not begin with `-`.
    pub reference: &'a str,
    /// A file or directory in the repository; empty for all of it. No `..`.
    pub path: &'a str,
    /// Whether the repository is a directory of this host.
    pub local: bool,
    /// An empty directory to work in.
    pub directory: &'a Path,
    /// Maximum number of files.
    pub max_files: usize,
    /// Maximum bytes of all files together.
    pub max_bytes: usize,
}

/// Files of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFiles {
    /// The commit, in hexadecimal digits.
    pub commit: String,
    /// The files by their paths below the directory; a single file has its name.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Repositories of templates are small; a larger one is a mistake.
const MAX_REPOSITORY_BYTES: u64 = 1 << 30;
const LIMITS: Limits = Limits {
    protocols: "https:ssh",
    timeout: Duration::from_mins(5),
    max_bytes: MAX_REPOSITORY_BYTES,
    max_entries: 100_000,
};

impl PinnedFiles {
    /// Fetches files, with the user's own settings of `git` and ssh(1).
    ///
    /// # Errors
    ///
    /// `git` is not installed or fails; the repository has no such reference or path; the path is not a few small
    /// files: links, submodules, too much; `stopped`.
    pub fn fetch(request: PinnedRequest<'_>, stopped: &AtomicBool) -> Result<Self> {
        Self::fetch_within(request, LIMITS, stopped)
    }

    fn fetch_within(request: PinnedRequest<'_>, limits: Limits, stopped: &AtomicBool) -> Result<Self> {
        let protocols = if request.local { "file" } else { limits.protocols };
        let git = Git {
            url: request.url,
            directory: request.directory,
            settings: Settings::OfUser,
            stopped,
            limits: Limits { protocols, ..limits },
        };
        let commit = commit(&git, request)?;
        let format = if commit.len() == 64 { "--object-format=sha256" } else { "--object-format=sha1" };
        git.run(&["init", "--quiet", "--bare", "--template=", "--initial-branch=jobc", format, "."])?;
        fetch_commit(&git, request.url, &commit)?;
        let files = read(&git, request, &commit)?;
        Ok(Self { commit, files })
    }
}

/// The commit of a reference; queries the server unless the reference is a commit.
fn commit(git: &Git<'_>, request: PinnedRequest<'_>) -> Result<String> {
    let name = request.reference;
    if is_commit(name) {
        return Ok(name.to_ascii_lowercase());
    }
    let listing =
        git.run(&["ls-remote", "--quiet", "--", request.url, name, &format!("refs/tags/{name}^{{}}")])?;
    choose(&listing, Some(name)).ok_or_else(|| {
        Error::new(Kind::Config, format!("the repository has no branch or tag `{name}`"))
            .help("write a branch, a tag or a full commit after `@`")
    })
}

fn fetch_commit(git: &Git<'_>, url: &str, commit: &str) -> Result<()> {
    let words = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "--", url, commit];
    let Err(failure) = git.attempt(&words)? else { return Ok(()) };
    let error = failure.error(git.settings);
    if !failure.is_of_request() {
        return Err(error);
    }
    // Not every server gives a commit that no reference names.
    let all = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];
    git.run(&["fetch", "--quiet", "--no-recurse-submodules", "--", url, all[0], all[1]])
        .map_err(|_| error)?;
    git.run(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).map(drop).map_err(|_| {
        Error::new(Kind::Config, format!("the repository has no commit `{commit}`"))
            .help("the commit may have been removed from its branch")
    })
}

/// Reads the files at the path of a commit that has been fetched.
fn read(git: &Git<'_>, request: PinnedRequest<'_>, commit: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let path = request.path;
    let words = ["ls-tree", "-r", "-z", "-l", "--full-tree", commit, path];
    let listing = git.run_bytes(&words[..words.len() - usize::from(path.is_empty())])?;
    let listing = String::from_utf8(listing).map_err(|_| invalid("a path that is not UTF-8"))?;
    let mut found = Vec::new();
    for line in listing.split('\0').filter(|line| !line.is_empty()) {
        let (columns, name) = line.split_once('\t').ok_or_else(|| invalid("an unexpected listing"))?;
        let mut columns = columns.split_whitespace();
        let (Some(mode), Some(_), Some(object), Some(size)) =
            (columns.next(), columns.next(), columns.next(), columns.next())
        else {
            return Err(invalid("an unexpected listing"));
        };
        let below = if name == path { name.rsplit('/').next() } else { below(name, path) };
        let Some(below) = below else { continue };
        match mode {
            "100644" | "100755" | "100664" => {}
            "120000" => return Err(invalid(&format!("the symbolic link `{}`", name.escape_debug()))),
            "160000" => return Err(invalid(&format!("the submodule `{}`", name.escape_debug()))),
            _ => return Err(invalid(&format!("`{}`, which is not a file", name.escape_debug()))),
        }
        found.push((below, object, size.parse().unwrap_or(usize::MAX)));
    }
    if found.is_empty() {
        let message = if path.is_empty() {
            "the repository has no files".to_owned()
        } else {
            format!("the repository has no `{path}`")
        };
        return Err(
            Error::new(Kind::Config, message).help("write the path of a file or directory after `//`")
        );
    }
    let bytes = found.iter().fold(0_usize, |sum, (.., size)| sum.saturating_add(*size));
    if found.len() > request.max_files || bytes > request.max_bytes {
        let (files, mebibytes) = (request.max_files, request.max_bytes >> 20);
        return Err(invalid(&format!("more than {files} files or {mebibytes} MiB"))
            .help("keep a template in a directory of its own, and name that after `//`"));
    }
    found
        .into_iter()
        .map(|(name, object, size)| {
            let content = git.run_bytes(&["cat-file", "blob", object])?;
            if content.len() != size {
                return Err(invalid("a file of another size than listed"));
            }
            Ok((name.to_owned(), content))
        })
        .collect()
}

/// The path of a file from a directory, if it is below it.
fn below<'a>(name: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() { Some(name) } else { name.strip_prefix(directory)?.strip_prefix('/') }
}

fn invalid(what: &str) -> Error {
    Error::new(Kind::Config, format!("the template has {what}"))
}

#[cfg(test)]
mod tests;
