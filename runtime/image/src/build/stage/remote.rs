//! Sources of `ADD` on other hosts: files are downloaded before the step's key is computed, repositories after.

use jobc_dockerfile::{Copy as Written, Refusal, Remote, RemoteError, Repository, Word};
use jobc_schema::digest::Digest;

use super::{Stage, StepOutcome};
use crate::build::files::CopySource;
use crate::build::git;
use crate::build::work::StepDirectory;

/// A source on another host, with what the step's key needs.
pub(super) struct Fetched {
    /// The part of the cache key for it.
    pub(super) key: Vec<String>,
    /// The file, if it is one.
    pub(super) source: Option<CopySource>,
    /// The repository, if it is one.
    pub(super) repository: Option<RepositorySource>,
}

/// A repository at a commit.
pub(super) struct RepositorySource {
    repository: Repository,
    commit: String,
    keep_git_directory: bool,
}

impl Stage<'_> {
    /// Downloads a file, or resolves the commit of a repository.
    pub(super) fn fetch_remote(
        &self,
        copy: &Written,
        word: &Word,
        remote: Result<Remote, RemoteError>,
    ) -> StepOutcome<Fetched> {
        let remote =
            remote.map_err(|error| Refusal::new(word.span.clone(), error.message).help(error.help))?;
        let checksum = copy
            .checksum
            .as_ref()
            .map(|checksum| Ok::<_, Refusal>((self.variables.expand(checksum)?, checksum)));
        let checksum = checksum.transpose()?;
        match remote {
            Remote::File(url) => {
                let expected = checksum.map(|(text, word)| {
                    text.parse::<Digest>().map_err(|_| {
                        Refusal::new(word.span.clone(), format!("invalid checksum `{text}`"))
                            .help("such as `--checksum=sha256:…` with 64 hexadecimal digits")
                    })
                });
                let file = self.builder.download(&url, expected.transpose()?.as_ref())?;
                Ok(Fetched {
                    key: vec![
                        "file".to_owned(),
                        file.digest.to_string(),
                        file.name.clone(),
                        file.modified.to_string(),
                    ],
                    source: Some(CopySource::Download {
                        path: file.path,
                        name: file.name,
                        modified: file.modified,
                    }),
                    repository: None,
                })
            }
            Remote::Repository(repository) => {
                let commit = self.resolve_commit(&repository)?;
                if let Some((expected, _)) = &checksum {
                    git::verify_commit(&repository, expected, &commit)?;
                }
                let directory = repository.subdirectory.clone().unwrap_or_default();
                let keep_git_directory = copy.keep_git_dir.or(repository.keep_git_dir).unwrap_or(false);
                let mut key = vec![
                    "repository".to_owned(),
                    commit.clone(),
                    directory,
                    if keep_git_directory { repository.url.clone() } else { String::new() },
                ];
                key.extend((!repository.submodules).then(|| "without submodules".to_owned()));
                let source = RepositorySource { repository, commit, keep_git_directory };
                Ok(Fetched { key, source: None, repository: Some(source) })
            }
        }
    }

    fn resolve_commit(&self, repository: &Repository) -> StepOutcome<String> {
        if repository.commit().is_some() {
            return Ok(git::known_commit(repository)?);
        }
        let step = self.builder.work()?.step(None)?;
        Ok(git::resolve(repository, step.path(), &self.builder.request.access, &self.builder.canceled)?)
    }
}

impl RepositorySource {
    /// Fetches its files into a step's directory.
    pub(super) fn check_out(
        &self,
        stage: &Stage<'_>,
        step: &StepDirectory,
        number: usize,
    ) -> StepOutcome<CopySource> {
        let directory = step.path().join(format!("repository-{number}"));
        let Self { repository, commit, keep_git_directory } = self;
        let (access, canceled) = (&stage.builder.request.access, &stage.builder.canceled);
        git::check_out(repository, commit, &directory, *keep_git_directory, access, canceled)?;
        Ok(CopySource::Directory(git::subdirectory(repository, &directory)?))
    }
}
