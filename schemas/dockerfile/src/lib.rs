//! Dockerfiles: text in, a graph of stages out, everything decided that can be before anything runs.
//!
//! [`read`] takes a user's own file or one of the dockerfile backend's and gives the stages that the target needs, each
//! after those it takes from; [`inspect`] gives all stages, with all that is wrong, to who builds nothing. What a base
//! image sets is known only when it is there, so words keep their `$NAME` until the builder fills them in with
//! [`Variables`], instruction by instruction. A mistake, and what the builder does not do, is a [`Refusal`] with the
//! place of the text at fault; one reading reports all of them.
//!
//! The rules are those of BuildKit's frontend (docs.docker.com/reference/dockerfile), in the files below: `lines` joins
//! lines, `words` splits them, `heredoc` takes documents out, `instruction` knows the forms, `stages` the graph,
//! `variables` and `expand` the values, `lint` the rules of `docker build --check`.
//!
//! Nothing here reads a file or runs anything: bytes come in, and data goes out. The compiler and the builder both read
//! by it, so they report the same findings.
//!
//! parse-dockerfile is not enough for either: it stops at the first mistake, has no places inside a joined line, leaves
//! `ENV`, `LABEL`, `ARG` and `--mount` as one string, and takes a heredoc's quoting and terminators otherwise than
//! BuildKit. The tests compare this parser with it.

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
    Arg, Command, Copy, Healthcheck, Heredoc, ImageOrStage, Instruction, Kind, Mount, MountKind, Network,
    Run, Runs, Sharing, Source, Word,
};
pub use instruction::ports;
pub use lint::{BaseVariables, ignored_sources, undefined_variables};
pub use refusal::{Refusal, Refusals, Rule, Span};
pub use remote::{Remote, RemoteError, Repository, is_commit};
pub use rules::Lint;
pub use variables::{PROXIES, Variables};

/// Reads a Dockerfile; where it cannot be built, all that is wrong with it.
pub fn read(bytes: &[u8], options: &Options<'_>) -> Result<Build, Refusals> {
    let Inspection { build, refusals, .. } = inspect(bytes, options);
    build.ok_or(Refusals(refusals))
}

/// Reads a Dockerfile as far as that goes, whether it can be built or not.
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

/// Reads an instruction of [`Kind::Onbuild`], the base image's, for a stage of a build that is based on it.
///
/// Its place is the stage's `FROM`. `--from` in it names a stage above, else an image.
pub fn trigger(text: &str, build: &Build, stage: usize) -> Result<Instruction, Refusal> {
    stages::trigger(text, build, stage)
}
