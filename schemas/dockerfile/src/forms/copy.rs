//! Parsed `COPY` and `ADD`.

use super::super::refusal::Span;
use super::word::{ImageOrStage, Word};

/// `COPY` or `ADD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The sources, at least one.
    pub sources: Vec<Source>,
    /// The destination, relative to `WORKDIR`.
    pub target: Word,
    /// `--from=`: a stage or image to copy from; the context if `None`.
    pub from: Option<ImageOrStage>,
    /// `--chown=user[:group]`; 0:0 if `None`.
    pub chown: Option<Word>,
    /// `--chmod=`, octal digits or letters once expanded: [`Variables::mode`](crate::Variables::mode).
    pub chmod: Option<Word>,
    /// `--exclude=`: patterns of a `.dockerignore`, relative to each source.
    pub exclude: Vec<Word>,
    /// `--parents`: also creates the sources' directories in the destination; `/./` in a source marks where they begin.
    pub parents: bool,
    /// `--link`: creates destination directories anew, without following links in the image.
    pub link: bool,
    /// `ADD --unpack=`: whether archives are unpacked. By default, `ADD` unpacks local archives and no
    /// downloads; `COPY` never does.
    pub unpack: Option<bool>,
    /// `ADD --checksum=`: the digest of a download, or the commit of a repository.
    pub checksum: Option<Word>,
    /// `ADD --keep-git-dir`: whether the `.git` of a repository is copied too.
    pub keep_git_dir: Option<bool>,
}

/// A source of `COPY` and `ADD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A path or glob relative to the root of the context, the stage or the image; for `ADD` also what
    /// [`Remote::parse`](crate::Remote::parse) accepts once variables are expanded.
    Path(Word),
    /// A file embedded in the Dockerfile.
    Heredoc(Heredoc),
}

/// A heredoc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heredoc {
    /// Its name, which is also the file's name if the destination is a directory.
    pub name: String,
    /// Its content, without leading tabs for `<<-`.
    pub content: String,
    /// Whether its variables are expanded, by [`Variables::expand_heredoc`](crate::Variables::expand_heredoc); not
    /// if the name is quoted.
    pub expand: bool,
    /// The span of its content.
    pub span: Span,
}
