//! Parses Dockerfiles into a graph of stages, and resolves everything that does not depend on running it.
//!
//! [`read`] parses a user's own file or one of the dockerfile backend, and returns the stages that the target needs,
//! each after those that it depends on; [`inspect`] returns all stages, with all errors, for tools that build nothing.
//! The settings of a base image are unknown until it is pulled, so words keep their `$NAME` until the builder expands
//! them with [`Variables`], instruction by instruction. An error, or a feature that the builder lacks, is a [`Refusal`]
//! with the span of the text; one run reports all of them.
//!
//! The rules are those of BuildKit's frontend (docs.docker.com/reference/dockerfile), in the files below: `lines` joins
//! lines, `words` splits them, `heredoc` extracts documents, `instruction` parses the forms, `stages` builds the graph,
//! `variables` and `expand` the values, `lint` the rules of `docker build --check`.
//!
//! Nothing here reads a file or runs anything. The compiler and the builder both use this
//! parser, so they report the same findings.
//!
//! parse-dockerfile suits neither: it stops at the first error, has no spans inside a joined line, leaves
//! `ENV`, `LABEL`, `ARG` and `--mount` as one string, and differs from BuildKit in a heredoc's quotes and
//! terminators. The tests compare this parser with it.

mod arguments;
mod build;
mod checks;
mod expand;
mod forms;
pub mod glob;
mod heredoc;
pub mod ignore;
mod instruction;
mod line;
mod lines;
mod lint;
mod refusal;
mod remote;
mod rules;
mod split;
mod stages;
#[cfg(test)]
mod tests;
mod variables;

pub use arguments::Arguments;
pub use build::{Build, Inspection, Options, Stage};
pub use checks::Checks;
pub use forms::{
    Arg, Command, Copy, Healthcheck, Heredoc, ImageOrStage, Instruction, Kind, Mount, MountField, MountKind,
    Network, Run, Runs, Sharing, Source, Word,
};
pub use instruction::ports;
pub use lint::{BaseVariables, ignored_sources, undefined_variables};
pub use refusal::{Refusal, Refusals, Rule, Span};
pub use remote::{Remote, RemoteError, Repository, is_commit};
pub use rules::Lint;
pub use variables::{PROXIES, Variables};

/// Parses a Dockerfile; fails with all errors if it cannot be built.
pub fn read(bytes: &[u8], options: &Options<'_>) -> Result<Build, Refusals> {
    let Inspection { build, refusals, .. } = inspect(bytes, options);
    build.ok_or(Refusals(refusals))
}

/// Parses a Dockerfile as far as possible, whether it can be built or not.
pub fn inspect(bytes: &[u8], options: &Options<'_>) -> Inspection {
    match text(bytes) {
        Ok(text) => stages::read(text, options),
        Err(refusal) => Inspection { refusals: vec![refusal], ..Inspection::default() },
    }
}

fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let end = error.error_len().map_or(bytes.len(), |length| at + length);
        Refusal::new(at..end, "this is not UTF-8").help("save the file as UTF-8")
    })?;
    match text.find('\0') {
        Some(at) => Err(Refusal::new(at..at + 1, "there is a NUL byte").help("leave it out")),
        None => Ok(text),
    }
}

/// Parses a trigger ([`Kind::Onbuild`]) of the base image for a stage that is based on it.
///
/// Its span is that of the stage's `FROM`. `--from` in it names a previous stage, else an image.
pub fn trigger(text: &str, build: &Build, stage: usize) -> Result<Instruction, Refusal> {
    stages::trigger(text, build, stage)
}
