//! Parsed instructions.

mod copy;
mod run;
mod word;

use super::refusal::Span;

pub use copy::{Copy, Heredoc, Source};
pub use run::{Mount, MountField, MountKind, Network, Run, Runs, Sharing};
pub use word::{Arg, Command, ImageOrStage, Word};

/// An instruction, including continuation lines and heredocs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// From its keyword to the end of its last heredoc.
    pub span: Span,
    /// Its text with the lines joined, without heredocs' contents: for progress output and the image's history.
    pub text: String,
    /// The parsed instruction.
    pub kind: Kind,
}

/// An instruction. A [`Word`] must be expanded by [`Variables::expand`](crate::Variables::expand); a
/// `String` is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ARG NAME[=DEFAULT] …`: [`Variables::declare`](crate::Variables::declare).
    Arg(Vec<Arg>),
    /// `ENV NAME=VALUE …`, names and values. All values are expanded before the first is set.
    Env(Vec<(Word, Word)>),
    /// `LABEL KEY=VALUE …`.
    Label(Vec<(Word, Word)>),
    /// `RUN`.
    Run(Run),
    /// `COPY`.
    Copy(Copy),
    /// `ADD`: like `COPY`, and local archives are unpacked.
    Add(Copy),
    /// `WORKDIR`: relative to the previous one.
    Workdir(Word),
    /// `USER name[:group]`.
    User(Word),
    /// `EXPOSE port[-port][/protocol] …`: [`Variables::expand_words`](crate::Variables::expand_words) may split a
    /// word into several.
    Expose(Vec<Word>),
    /// `VOLUME`.
    Volume(Vec<Word>),
    /// `ENTRYPOINT`; an empty exec form removes it.
    Entrypoint(Command),
    /// `CMD`.
    Cmd(Command),
    /// `SHELL`: the shell for later instructions in shell form.
    Shell(Vec<String>),
    /// `STOPSIGNAL`.
    Stopsignal(Word),
    /// `HEALTHCHECK`.
    Healthcheck(Healthcheck),
    /// `ONBUILD`: the text of the instruction, which was parsed once and is valid; see [`trigger`](crate::trigger).
    Onbuild(String),
    /// `MAINTAINER`.
    Maintainer(String),
}

/// `HEALTHCHECK`. Durations are in nanoseconds, as in an image's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Healthcheck {
    /// `HEALTHCHECK NONE`: removes the base image's.
    None,
    /// `HEALTHCHECK CMD`.
    Cmd {
        /// The command.
        command: Command,
        /// `--interval=`.
        interval: Option<u64>,
        /// `--timeout=`.
        timeout: Option<u64>,
        /// `--start-period=`.
        start_period: Option<u64>,
        /// `--start-interval=`.
        start_interval: Option<u64>,
        /// `--retries=`.
        retries: Option<u32>,
    },
}

impl Instruction {
    /// The sources of files besides the context: `--from` of a copy, `from` of a mount.
    pub fn sources(&self) -> Vec<&ImageOrStage> {
        match &self.kind {
            Kind::Copy(copy) | Kind::Add(copy) => copy.from.iter().collect(),
            Kind::Run(run) => run.mounts.iter().filter_map(|mount| mount.kind.source()).collect(),
            _ => Vec::new(),
        }
    }
}
