//! Parsed `COPY` and `ADD`.

use super::super::refusal::Span;
use super::word::{ImageOrStage, Word};

/// What `COPY` and `ADD` do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// What is copied, at least one.
    pub sources: Vec<Source>,
    /// Where to, relative to `WORKDIR`.
    pub target: Word,
    /// `--from=`: whose files; the context's where absent.
    pub from: Option<ImageOrStage>,
    /// `--chown=user[:group]`; 0:0 where absent.
    pub chown: Option<Word>,
    /// `--chmod=`, octal once filled in: [`Variables::mode`](crate::Variables::mode).
    pub chmod: Option<Word>,
    /// `--exclude=`: patterns of a `.dockerignore`, relative to each source.
    pub exclude: Vec<Word>,
    /// `--parents`: the sources' directories are made in the target too; a `/./` in a source marks where they begin.
    pub parents: bool,
    /// `--link`: target directories are made anew, links in the image not followed.
    pub link: bool,
    /// `ADD --unpack=`: whether archives are unpacked. Where absent, `ADD` unpacks those of the context and none that
    /// it downloads; `COPY` never does.
    pub unpack: Option<bool>,
    /// `ADD --checksum=`: the digest of a download, or the commit of a repository.
    pub checksum: Option<Word>,
    /// `ADD --keep-git-dir`: `.git` of a repository is copied too.
    pub keep_git_dir: bool,
}

/// A source of `COPY` and `ADD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A path or a glob below the root of the context, the stage or the image; for `ADD` also what
    /// [`Remote::parse`](crate::Remote::parse) accepts once variables are filled in.
    Path(Word),
    /// A file written in the Dockerfile.
    Heredoc(Heredoc),
}

/// A heredoc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heredoc {
    /// Its name, which is the file's where the target is a directory.
    pub name: String,
    /// Its lines, leading tabs taken off where it is written `<<-`.
    pub content: String,
    /// Whether variables in it are filled in, by [`Variables::expand_heredoc`](crate::Variables::expand_heredoc); not
    /// where the name is quoted.
    pub expand: bool,
    /// Its lines' place.
    pub span: Span,
}
