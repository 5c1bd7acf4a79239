//! Git repositories for `ADD` and as build contexts, by the program `git`.
//!
//! A reference becomes a commit first, which is part of a step's key; the files are fetched only if the step is not
//! cached. The checkout depends only on the commit: modes are 0755 and 0644, times those of the commit.

mod command;
mod environment;
mod failure;
mod normalize;
mod pinned;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use jobc_dockerfile::{Repository, is_commit};
use jobc_sys::error::{Error, Kind, Result};

use super::access::without_password;
use super::access::{Access, Certificates};
use super::work::WorkDirectory;
use crate::store::Store;
use command::{Git, OF_BUILDS};
use environment::Settings;
pub use pinned::{PinnedFiles, PinnedRequest};

/// The id of the agent that git by SSH uses, as with BuildKit.
const AGENT: &str = "default";

/// A build context that was fetched. Dropping it removes it.
#[derive(Debug)]
pub struct FetchedContext {
    path: PathBuf,
    commit: String,
    _work: WorkDirectory,
}

impl FetchedContext {
    /// Fetches the files of a repository.
    ///
    /// # Errors
    ///
    /// `git` is not installed; it fails; the repository has no such reference or directory; `stopped`.
    pub fn fetch(
        store: &Store,
        repository: &Repository,
        access: &Access<'_>,
        stopped: &AtomicBool,
    ) -> Result<Self> {
        WorkDirectory::sweep(store)?;
        let work = WorkDirectory::create(store)?;
        let step = work.step(None)?;
        let commit = resolve(repository, step.path(), access, stopped)?;
        // A build's steps have numbers.
        let directory = work.new_file();
        let keep_git_directory = repository.keep_git_dir.unwrap_or(false);
        check_out(repository, &commit, &directory, keep_git_directory, access, stopped)?;
        let path = subdirectory(repository, &directory)?;
        Ok(Self { path, commit, _work: work })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The commit, in hexadecimal digits.
    pub fn commit(&self) -> &str {
        &self.commit
    }
}

/// The commit of a repository's reference; queries the server unless the reference is a commit.
pub(super) fn resolve(
    repository: &Repository,
    home: &Path,
    access: &Access<'_>,
    stopped: &AtomicBool,
) -> Result<String> {
    if repository.commit().is_some() {
        return known_commit(repository);
    }
    let certificates = access.certificates.map(Certificates::path);
    let git = git(repository, home, access, certificates.as_deref(), stopped);
    let mut words = vec!["ls-remote", "--quiet", "--", &repository.url];
    let name = repository.reference.as_deref();
    let deref = match name {
        Some(name) if name.starts_with("refs/") => format!("{name}^{{}}"),
        name => format!("refs/tags/{}^{{}}", name.unwrap_or_default()),
    };
    match name {
        Some(name) => words.extend([name, &deref]),
        None => words.push("HEAD"),
    }
    let listing = git.run(&words)?;
    let commit = choose(&listing, name).ok_or_else(|| {
        let message = match name {
            Some(name) => format!("`{}` has no branch or tag `{name}`", without_password(&repository.url)),
            None => format!("`{}` has no default branch", without_password(&repository.url)),
        };
        Error::new(Kind::Config, message).help("write a branch, a tag or a full commit after `#`")
    })?;
    if let Some(expected) = &repository.checksum {
        verify_commit(repository, expected, &commit)?;
    }
    Ok(commit)
}

/// The commit of a repository that names one.
pub(super) fn known_commit(repository: &Repository) -> Result<String> {
    let commit = repository.commit().unwrap_or_default().to_ascii_lowercase();
    if let Some(expected) = &repository.checksum {
        verify_commit(repository, expected, &commit)?;
    }
    Ok(commit)
}

/// Verifies that a commit is the expected one, of which the first digits are enough.
pub(super) fn verify_commit(repository: &Repository, expected: &str, commit: &str) -> Result<()> {
    if !expected.is_empty() && commit.starts_with(&expected.to_ascii_lowercase()) {
        return Ok(());
    }
    let url = without_password(&repository.url);
    let message = format!("the commit of `{url}` does not match: expected `{expected}`, got `{commit}`");
    Err(Error::new(Kind::Config, message)
        .help("the branch or tag has changed; verify it, then correct the checksum"))
}

/// The commit of a name in the output of `git ls-remote`. As git-checkout(1) does, a branch is preferred to a tag.
fn choose(listing: &str, name: Option<&str>) -> Option<String> {
    let find = |wanted: &str| {
        let mut lines = listing.lines().filter_map(|line| line.split_once('\t'));
        let line = lines.find(|(commit, reference)| *reference == wanted && is_commit(commit))?;
        Some(line.0.to_ascii_lowercase())
    };
    let Some(name) = name else { return find("HEAD") };
    [
        format!("refs/heads/{name}"),
        format!("refs/tags/{name}^{{}}"),
        format!("refs/tags/{name}"),
        format!("{name}^{{}}"),
        format!("refs/{name}"),
        name.to_owned(),
    ]
    .iter()
    .find_map(|wanted| find(wanted))
}

/// Checks a commit out into a new directory.
pub(super) fn check_out(
    repository: &Repository,
    commit: &str,
    directory: &Path,
    keep_git_directory: bool,
    access: &Access<'_>,
    stopped: &AtomicBool,
) -> Result<()> {
    fs::create_dir(directory).map_err(|error| {
        Error::new(Kind::System, format!("cannot make `{}`", directory.display())).because(error)
    })?;
    let certificates = access.certificates.map(Certificates::path);
    let git = git(repository, directory, access, certificates.as_deref(), stopped);
    let format = if commit.len() == 64 { "--object-format=sha256" } else { "--object-format=sha1" };
    git.run(&["init", "--quiet", "--template=", "--initial-branch=jobc", format])?;
    git.run(&["remote", "add", "origin", &repository.url])?;
    // Not every server gives a commit that no reference names.
    let shallow = git.run(&["fetch", "--quiet", "--no-tags", "--depth=1", "origin", commit]);
    if let Err(error) = shallow {
        if error.kind == Kind::State || error.kind == Kind::Unsupported {
            return Err(error);
        }
        git.run(&["fetch", "--quiet", "--tags", "origin", "+refs/heads/*:refs/remotes/origin/*"])
            .map_err(|_| error)?;
    }
    git.run(&["checkout", "--quiet", "--force", "--detach", commit, "--"])?;
    if repository.submodules
        && fs::symlink_metadata(directory.join(".gitmodules")).is_ok_and(|data| data.is_file())
    {
        git.run(&["submodule", "--quiet", "update", "--init", "--recursive", "--depth=1"])?;
    }
    if keep_git_directory {
        // It is part of the image.
        git.run(&["remote", "set-url", "origin", &without_password(&repository.url)])?;
    }
    let time = git.run(&["log", "-1", "--format=%ct"])?.trim().parse().unwrap_or(0);
    normalize::normalize(directory, keep_git_directory, time)
        .map_err(|error| Error::new(Kind::System, "cannot change the files of a repository").because(error))
}

/// The directory of a repository that is wanted; no link leads to it.
pub(super) fn subdirectory(repository: &Repository, root: &Path) -> Result<PathBuf> {
    let Some(below) = &repository.subdirectory else { return Ok(root.to_owned()) };
    let mut path = root.to_owned();
    for name in below.split('/').filter(|name| !matches!(*name, "" | ".")) {
        path.push(name);
        if !fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir()) {
            let message = format!("`{}` has no directory `{below}`", without_password(&repository.url));
            return Err(Error::new(Kind::Config, message)
                .help("write a directory of the repository after `#REF:`; links are not followed"));
        }
    }
    Ok(path)
}

fn git<'a>(
    repository: &'a Repository,
    directory: &'a Path,
    access: &'a Access<'_>,
    certificates: Option<&'a Path>,
    stopped: &'a AtomicBool,
) -> Git<'a> {
    let agent = access.agents.get(AGENT).map(PathBuf::as_path);
    Git {
        url: &repository.url,
        directory,
        settings: Settings::Isolated { agent, certificates },
        stopped,
        limits: OF_BUILDS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_dockerfile::Remote;

    #[test]
    fn a_branch_is_preferred_to_a_tag_and_a_tag_is_its_commit() {
        let commit = |digit: char| digit.to_string().repeat(40);
        let listing = format!(
            "{}\trefs/heads/x/v1\n{}\trefs/heads/both\n{}\trefs/tags/both\n{}\trefs/tags/v1\n{}\trefs/tags/v1^{{}}\n{}\tHEAD\n",
            commit('1'),
            commit('2'),
            commit('3'),
            commit('4'),
            commit('5'),
            commit('6')
        );
        let check = |name: Option<&str>| choose(&listing, name).map(|commit| commit[..1].to_owned());
        assert_eq!(check(None).as_deref(), Some("6"));
        assert_eq!(check(Some("both")).as_deref(), Some("2"));
        assert_eq!(check(Some("v1")).as_deref(), Some("5"));
        assert_eq!(check(Some("refs/heads/x/v1")).as_deref(), Some("1"));
        assert_eq!(check(Some("refs/tags/v1")).as_deref(), Some("5"));
        assert_eq!(check(Some("heads/both")).as_deref(), Some("2"));
        assert_eq!(check(Some("1")), None);
    }

    #[test]
    fn links_lead_to_no_subdirectory() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        std::os::unix::fs::symlink("/etc", root.path().join("a/link")).unwrap();
        let find = |below: &str| {
            let text = format!("https://h/r.git#:{below}");
            let Some(Ok(Remote::Repository(repository))) = Remote::parse(&text) else { panic!("{text}") };
            subdirectory(&repository, root.path())
        };
        assert_eq!(find("a/./b").unwrap(), root.path().join("a/b"));
        assert!(find("a/link").is_err() && find("a/link/ssl").is_err() && find("c").is_err());
    }
}
