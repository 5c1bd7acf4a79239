//! What is read of a whole file: its stages, what is built of them, and how.

use super::arguments::Arguments;
use super::checks::Checks;
use super::forms::{ImageOrStage, Instruction};
use super::refusal::{Refusal, Span};

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

/// The content of a Dockerfile, and all findings about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// All stages in the order of the file; instructions that cannot be read are not in them. An
    /// [`ImageOrStage::Stage`] is an index into this list.
    pub stages: Vec<Stage>,
    /// `ARG`s before the first `FROM`.
    pub globals: Vec<Instruction>,
    /// Every name that an `ARG` declares, in order.
    pub declared: Vec<String>,
    /// The character that escapes.
    pub escape: char,
    /// What variables begin with.
    pub arguments: Arguments,
    /// Which rules apply to the file.
    pub checks: Checks,
    /// The requested stage, an index into `stages`.
    pub target: Option<usize>,
    /// What is built; absent where anything is wrong.
    pub build: Option<Build>,
    /// What keeps it from being built, in the order of the file; what has no place comes first.
    pub refusals: Vec<Refusal>,
    /// What is worth knowing and forbids nothing, in the same order.
    pub remarks: Vec<Refusal>,
}

/// What a Dockerfile asks to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The stages that the target needs and no others, in the order of the file: each is after all it takes from.
    pub stages: Vec<Stage>,
    /// Which of `stages` is the result. It is the last one.
    pub target: usize,
    /// The character that escapes: `\`, or a grave accent if the file has `# escape=`.
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
    /// Its base.
    pub from: ImageOrStage,
    /// Whether its base depends on the platform that is built for, or builds.
    pub by_platform: bool,
    /// Where the file names its base.
    pub base: Span,
    /// What is done, in order.
    pub instructions: Vec<Instruction>,
}
