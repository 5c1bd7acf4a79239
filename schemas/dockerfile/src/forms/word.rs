//! Parts of instructions: words, command lines, and sources of files.

use super::super::refusal::Span;

/// The base of a stage, or the source of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageOrStage {
    /// A stage before this one: an index into [`Build::stages`](super::build::Build::stages).
    Stage(usize),
    /// An image.
    Image {
        /// Its reference with variables expanded: `debian:12`.
        reference: String,
        /// `FROM --platform=…`, with variables expanded; the build's platform if `None`.
        platform: Option<String>,
        /// The span of its reference.
        span: Span,
    },
    /// `scratch`.
    Scratch,
}

/// A piece of the file that may contain quotes and variables, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// The text.
    pub text: String,
    /// Its span.
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

/// A command line in shell or exec form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Shell form: text passed to the stage's `SHELL` as the last argument.
    Shell(String),
    /// Exec form: arguments, with the program first.
    Exec(Vec<String>),
}
