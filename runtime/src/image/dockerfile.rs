//! Dockerfiles: text in, a graph of stages out, everything decided that can be before anything runs.
//!
//! [`read`] takes a user's own file or one of the dockerfile backend's and gives the stages that the target needs, each
//! after those it takes from. What a base image sets is known only when it is there, so words keep their `$NAME` until
//! the builder fills them in with [`Variables`], instruction by instruction. A mistake, and what the builder does not
//! do, is a [`Refusal`] with the place of the text at fault; one reading reports all of them.
//!
//! The rules are those of BuildKit's frontend (docs.docker.com/reference/dockerfile), in the files below: `lines` joins
//! lines, `words` splits them, `heredoc` takes documents out, `instruction` knows the forms, `stages` the graph, `variables`
//! and `expand` the values.
//!
//! parse-dockerfile, which the compiler takes for its hints, is not enough to build by: it stops at the first mistake, has
//! no places inside a joined line, leaves `ENV`, `LABEL`, `ARG` and `--mount` as one string, and takes a heredoc's quoting
//! and terminators otherwise than BuildKit. It judges this reader in the tests.

mod expand;
pub mod glob;
mod heredoc;
pub mod ignore;
mod instruction;
mod lines;
mod stages;
#[cfg(test)]
mod tests;
mod variables;
mod words;

use std::fmt;
use std::ops::Range;

pub use instruction::ports;
pub use variables::{Arguments, PROXIES, Variables};

/// A place in the file: bytes, from and to.
pub type Span = Range<usize>;

/// All that keeps a Dockerfile from being built, in the order of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals(pub Vec<Refusal>);

/// How a Dockerfile is to be built, as far as reading it goes.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Build arguments: names and values.
    pub args: &'a [(String, String)],
    /// The stage to build, by name or number; the last where absent.
    pub target: Option<&'a str>,
    /// What the image is for, `linux/amd64`.
    pub platform: &'a str,
    /// What builds it.
    pub build_platform: &'a str,
}

/// Reads a Dockerfile; where it cannot be built, all that is wrong with it.
pub fn read(bytes: &[u8], options: &Options<'_>) -> Result<Build, Refusals> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let end = error.error_len().map_or(bytes.len(), |length| at + length);
        Refusals(vec![Refusal::new(at..end, "this is not UTF-8").help("save the file as UTF-8")])
    })?;
    if let Some(at) = text.find('\0') {
        return Err(Refusals(vec![Refusal::new(at..at + 1, "there is a NUL byte").help("leave it out")]));
    }
    stages::read(text, options)
}

/// Reads an instruction of [`Kind::Onbuild`], the base image's, for a stage of a build that stands on it.
///
/// Its place is the stage's `FROM`. `--from` in it names a stage above, else an image.
pub fn trigger(text: &str, build: &Build, stage: usize) -> Result<Instruction, Refusal> {
    stages::trigger(text, build, stage)
}

/// What a Dockerfile asks to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The stages that the target needs and no others, in the order of the file: each stands after all it takes from.
    pub stages: Vec<Stage>,
    /// Which of `stages` is the result. It is the last one.
    pub target: usize,
    /// The character that escapes: `\`, or a grave accent where the file says `# escape=`.
    pub escape: char,
    /// What variables begin with.
    pub arguments: Arguments,
    /// What is worth knowing and forbids nothing, such as an argument that no `ARG` declares.
    pub remarks: Vec<Refusal>,
}

/// A stage: a base and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its `FROM` line.
    pub span: Span,
    /// `AS name`, in lower case.
    pub name: Option<String>,
    /// Its number in the file, from 0, as `--from=0` counts.
    pub number: usize,
    /// What it stands on.
    pub from: From,
    /// What is done, in order.
    pub instructions: Vec<Instruction>,
}

/// What a stage stands on, or files are taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// A stage before this one: an index into [`Build::stages`].
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

/// What an instruction does. A [`Word`] is to be filled in by [`Variables::expand`]; a `String` is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ARG NAME[=DEFAULT] …`: [`Variables::declare`].
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
    /// `EXPOSE port[-port][/protocol] …`: words that [`Variables::expand_words`] may make several of.
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
    /// `ONBUILD`: the instruction as written, which was read once and found good; see [`trigger`].
    Onbuild(String),
    /// `MAINTAINER`.
    Maintainer(String),
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
    /// Its value where nobody gives one.
    pub default: Option<Word>,
}

/// A command line in one of its two forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Text for the stage's `SHELL`, as one argument behind its own.
    Shell(String),
    /// Arguments, the program first.
    Exec(Vec<String>),
}

/// What `RUN` runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The command; heredocs are in it already.
    pub command: Runs,
    /// `--mount=…`, in order.
    pub mounts: Vec<Mount>,
    /// `--network=…`.
    pub network: Network,
}

/// A command of `RUN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Text for the stage's `SHELL`; here-documents stand in it as the shell wants them.
    Shell(String),
    /// Arguments, the program first.
    Exec(Vec<String>),
    /// A heredoc that begins with `#!`: a file of mode 0755 to be executed, there for the time of the command.
    Script {
        /// The heredoc's name, which BuildKit gives the file.
        name: String,
        /// The file.
        content: String,
    },
}

/// `RUN --network=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// As the builder is told.
    #[default]
    Default,
    /// None but loopback.
    None,
    /// The machine's own.
    Host,
}

/// `RUN --mount=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its place in the file.
    pub span: Span,
    /// What is mounted.
    pub kind: MountKind,
    /// Where, a path in the container, relative to `WORKDIR`. Absent only for a secret that is just a variable, or stands
    /// at `/run/secrets/ID`.
    pub target: Option<Word>,
    /// Whether the command cannot write there. What it writes to a `bind` mount is thrown away in any case.
    pub read_only: bool,
}

/// What `RUN --mount=type=…` mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountKind {
    /// Files of the context, a stage or an image.
    Bind {
        /// Whose files; the context where absent.
        from: Option<From>,
        /// A path in it; all of it where absent.
        source: Option<Word>,
    },
    /// A folder that is kept between builds.
    Cache {
        /// What tells caches apart; the target where absent.
        id: Option<Word>,
        /// Whether several may use it at once.
        sharing: Sharing,
        /// What an empty one begins with.
        from: Option<From>,
        /// The folder in `from`.
        source: Option<Word>,
        /// Permissions of a new one; 0755 where absent.
        mode: Option<u32>,
        /// Owner of a new one; 0 where absent.
        uid: Option<u32>,
        /// Group of a new one; 0 where absent.
        gid: Option<u32>,
    },
    /// Memory.
    Tmpfs {
        /// Bytes, where bounded.
        size: Option<u64>,
    },
    /// A secret of the one who builds.
    Secret {
        /// Its name: `id`, else `source`, else the last part of the target.
        id: Word,
        /// The variable that holds its value; a file only where absent.
        env: Option<String>,
        /// Whether the build fails without it.
        required: bool,
        /// Permissions; 0400 where absent.
        mode: Option<u32>,
        /// Owner; 0 where absent.
        uid: Option<u32>,
        /// Group; 0 where absent.
        gid: Option<u32>,
    },
}

/// `sharing=` of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Several at once.
    #[default]
    Shared,
    /// A folder of its own for whoever comes while another uses it.
    Private,
    /// One after another.
    Locked,
}

/// What `COPY` and `ADD` do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// What is copied, at least one.
    pub sources: Vec<Source>,
    /// Where to, relative to `WORKDIR`.
    pub target: Word,
    /// `--from=`: whose files; the context's where absent.
    pub from: Option<From>,
    /// `--chown=user[:group]`; 0:0 where absent.
    pub chown: Option<Word>,
    /// `--chmod=`, octal once filled in: [`Variables::mode`].
    pub chmod: Option<Word>,
    /// `--exclude=`: patterns of a `.dockerignore`, relative to each source.
    pub exclude: Vec<Word>,
    /// `--parents`: the sources' folders are made in the target too; a `/./` in a source says from where on.
    pub parents: bool,
    /// `--link`: target folders are made anew, links in the image not followed.
    pub link: bool,
    /// `ADD --unpack=`: whether archives are unpacked; `ADD` does, `COPY` never.
    pub unpack: bool,
}

/// A source of `COPY` and `ADD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A path or a glob below the root of the context, the stage or the image.
    Path(Word),
    /// A file written in the Dockerfile.
    Heredoc(Heredoc),
}

/// A heredoc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heredoc {
    /// Its name, which is the file's where the target is a folder.
    pub name: String,
    /// Its lines, leading tabs taken off where it is written `<<-`.
    pub content: String,
    /// Whether variables in it are filled in, by [`Variables::expand_heredoc`]; not where the name is quoted.
    pub expand: bool,
    /// Its lines' place.
    pub span: Span,
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

/// Something of a Dockerfile that is wrong, or that the builder does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where.
    pub span: Span,
    /// What is wrong: lower case, no full stop, names in backticks.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Whether other builders take it.
    pub unsupported: bool,
}

impl Instruction {
    /// Whatever it takes files from besides the context: `--from` of a copy, `from` of a mount.
    pub fn sources(&self) -> Vec<&From> {
        match &self.kind {
            Kind::Copy(copy) | Kind::Add(copy) => copy.from.iter().collect(),
            Kind::Run(run) => run.mounts.iter().filter_map(|mount| mount.kind.source()).collect(),
            _ => Vec::new(),
        }
    }
}

impl MountKind {
    fn source(&self) -> Option<&From> {
        match self {
            Self::Bind { from, .. } | Self::Cache { from, .. } => from.as_ref(),
            Self::Tmpfs { .. } | Self::Secret { .. } => None,
        }
    }

    fn source_mut(&mut self) -> Option<&mut From> {
        match self {
            Self::Bind { from, .. } | Self::Cache { from, .. } => from.as_mut(),
            Self::Tmpfs { .. } | Self::Secret { .. } => None,
        }
    }
}

impl Refusal {
    /// A refusal of the text at a place.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None, unsupported: false }
    }

    /// Says what to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
