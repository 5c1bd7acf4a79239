//! `code` of a job: a directory that goes with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A directory that goes with the job: its path, or a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Code {
    /// The directory.
    Path(String),
    /// The directory and how roles see it.
    Block(CodeBlock),
}

/// A directory that goes with the job, and how roles see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeBlock {
    /// Directory with the code: a path relative to the job file.
    #[schemars(length(min = 1), extend("examples" = ["."]))]
    pub from: String,
    /// Where roles see it. Default: `workdir` of the role, otherwise that of its image block, otherwise `/workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/workspace"]))]
    pub mount: Option<String>,
    /// Roles that see it. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = [["train"]]))]
    pub roles: Option<Vec<String>>,
}

impl Code {
    /// The directory.
    pub fn from(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Block(block) => &block.from,
        }
    }

    /// The block, if it is one.
    pub fn block(&self) -> Option<&CodeBlock> {
        match self {
            Self::Path(_) => None,
            Self::Block(block) => Some(block),
        }
    }
}
