//! Parsed instructions.

mod copy;
mod run;
mod word;

use super::refusal::Span;

pub use copy::{Copy, Heredoc, Source};
pub use run::{Mount, MountKind, Network, Run, Runs, Sharing};
pub use word::{Arg, Command, ImageOrStage, Word};

/// A line of the file, continuation lines and heredocs included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// From its keyword to the end of its last heredoc.
    pub span: Span,
    /// As written with the lines joined, without heredocs' contents: for progress and for the image's history.
    pub text: String,
    /// What it does.
    pub kind: Kind,
}

/// What an instruction does. A [`Word`] is to be filled in by [`Variables::expand`](crate::Variables::expand); a
/// `String` is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ARG NAME[=DEFAULT] …`: [`Variables::declare`](crate::Variables::declare).
    Arg(Vec<Arg>),
    /// `ENV NAME=VALUE …`, names and values. All values are filled in before the first is set.
    Env(Vec<(Word, Word)>),
    /// `LABEL KEY=VALUE …`.
    Label(Vec<(Word, Word)>),
    /// `RUN`.
    Run(Run),
    /// `COPY`.
    Copy(Copy),
    /// `ADD`: as `COPY`, and local archives are unpacked.
    Add(Copy),
    /// `WORKDIR`: relative to the one before.
    Workdir(Word),
    /// `USER name[:group]`.
    User(Word),
    /// `EXPOSE port[-port][/protocol] …`: words that [`Variables::expand_words`](crate::Variables::expand_words) may
    /// make several of.
    Expose(Vec<Word>),
    /// `VOLUME`.
    Volume(Vec<Word>),
    /// `ENTRYPOINT`; an empty exec form takes it away.
    Entrypoint(Command),
    /// `CMD`.
    Cmd(Command),
    /// `SHELL`: what runs shell forms from here on.
    Shell(Vec<String>),
    /// `STOPSIGNAL`.
    Stopsignal(Word),
    /// `HEALTHCHECK`.
    Healthcheck(Healthcheck),
    /// `ONBUILD`: the instruction as written, which was read once and found good; see [`trigger`](crate::trigger).
    Onbuild(String),
    /// `MAINTAINER`.
    Maintainer(String),
}

/// `HEALTHCHECK`. Times are nanoseconds, as in an image's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Healthcheck {
    /// `HEALTHCHECK NONE`: the base's is taken away.
    None,
    /// `HEALTHCHECK CMD`.
    Cmd {
        /// What is run.
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
    /// Whatever it takes files from besides the context: `--from` of a copy, `from` of a mount.
    pub fn sources(&self) -> Vec<&ImageOrStage> {
        match &self.kind {
            Kind::Copy(copy) | Kind::Add(copy) => copy.from.iter().collect(),
            Kind::Run(run) => run.mounts.iter().filter_map(|mount| mount.kind.source()).collect(),
            _ => Vec::new(),
        }
    }
}
