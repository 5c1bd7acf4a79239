//! The result of parsing a whole file: its stages, which of them are built, and how.

use super::arguments::Arguments;
use super::checks::Checks;
use super::forms::{ImageOrStage, Instruction};
use super::refusal::{Refusal, Span};

/// How a Dockerfile is to be built, as far as parsing depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Build arguments: names and values.
    pub args: &'a [(String, String)],
    /// The stage to build, by name or number; the last one if `None`.
    pub target: Option<&'a str>,
    /// The platform of the image, such as `linux/amd64`.
    pub platform: &'a str,
    /// The platform of the builder.
    pub build_platform: &'a str,
}

/// The content of a Dockerfile, and all findings about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// All stages in source order, without invalid instructions. An
    /// [`ImageOrStage::Stage`] is an index into this list.
    pub stages: Vec<Stage>,
    /// `ARG`s before the first `FROM`.
    pub globals: Vec<Instruction>,
    /// The name of every `ARG`, in order.
    pub declared: Vec<String>,
    /// The escape character.
    pub escape: char,
    /// The initial variables.
    pub arguments: Arguments,
    /// Which rules apply to the file.
    pub checks: Checks,
    /// The requested stage, an index into `stages`.
    pub target: Option<usize>,
    /// What to build; `None` if there is an error.
    pub build: Option<Build>,
    /// Errors, in source order; those without a place come first.
    pub refusals: Vec<Refusal>,
    /// Warnings, in the same order.
    pub remarks: Vec<Refusal>,
}

/// What a Dockerfile builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The stages that the target needs, in source order: each comes after all that it depends on.
    pub stages: Vec<Stage>,
    /// The index in `stages` of the result: the last one.
    pub target: usize,
    /// The escape character: `\`, or a backtick if the file has `# escape=`.
    pub escape: char,
    /// The initial variables.
    pub arguments: Arguments,
    /// Warnings, such as an argument that no `ARG` declares.
    pub remarks: Vec<Refusal>,
    /// `SOURCE_DATE_EPOCH` of the build arguments or of an `ARG` before the first `FROM`, in seconds since 1970.
    pub epoch: Option<i64>,
}

/// A stage: a base and its instructions.
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
    /// Whether its base depends on the platform of the image or of the builder.
    pub by_platform: bool,
    /// The span of its base.
    pub base: Span,
    /// Its instructions, in order.
    pub instructions: Vec<Instruction>,
}
