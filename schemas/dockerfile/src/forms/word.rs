//! What instructions consist of: words, command lines, and whatever files are taken from.

use super::super::refusal::Span;

/// The base of a stage, or the source of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageOrStage {
    /// A stage before this one: an index into [`Build::stages`](super::build::Build::stages).
    Stage(usize),
    /// An image.
    Image {
        /// As written, variables filled in: `debian:12`.
        reference: String,
        /// `FROM --platform=…`, variables filled in; the build's platform where absent.
        platform: Option<String>,
        /// Where the file names it.
        span: Span,
    },
    /// Nothing at all.
    Scratch,
}

/// A piece of the file that may hold quotes and variables, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// The text.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// `NAME` or `NAME=DEFAULT` of `ARG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    /// The name.
    pub name: Word,
    /// Its default value.
    pub default: Option<Word>,
}

/// A command line in one of its two forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Text for the stage's `SHELL`, as one argument after its own.
    Shell(String),
    /// Arguments, the program first.
    Exec(Vec<String>),
}
