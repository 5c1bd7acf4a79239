//! Parsed `RUN`.

use super::super::refusal::Span;
use super::word::{ImageOrStage, Word};

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
    /// Text for the stage's `SHELL`; here-documents are in it as the shell expects them.
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
    /// As set for the builder.
    #[default]
    Default,
    /// None but loopback.
    None,
    /// The host's own.
    Host,
}

/// `RUN --mount=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its place in the file.
    pub span: Span,
    /// What is mounted.
    pub kind: MountKind,
    /// Where, a path in the container, relative to `WORKDIR`, which is also the default. Absent only for an agent's socket, and for a secret that
    /// is just a variable or is at `/run/secrets/ID`.
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
        from: Option<ImageOrStage>,
        /// A path in it; all of it where absent.
        source: Option<Word>,
    },
    /// A directory that is kept between builds.
    Cache {
        /// The ID of the cache. Default: the target.
        id: Option<Word>,
        /// Whether several may use it at once.
        sharing: Sharing,
        /// What an empty one begins with.
        from: Option<ImageOrStage>,
        /// The directory in `from`.
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
    /// A socket of the SSH agent of the one who builds.
    Ssh {
        /// Its name; `default` where absent.
        id: Option<Word>,
        /// Whether the build fails without it.
        required: bool,
        /// Permissions; 0600 where absent.
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
    /// A separate directory for each concurrent user.
    Private,
    /// One after another.
    Locked,
}

impl MountKind {
    pub(super) fn source(&self) -> Option<&ImageOrStage> {
        match self {
            Self::Bind { from, .. } | Self::Cache { from, .. } => from.as_ref(),
            Self::Tmpfs { .. } | Self::Secret { .. } | Self::Ssh { .. } => None,
        }
    }

    pub(crate) fn source_mut(&mut self) -> Option<&mut ImageOrStage> {
        match self {
            Self::Bind { from, .. } | Self::Cache { from, .. } => from.as_mut(),
            Self::Tmpfs { .. } | Self::Secret { .. } | Self::Ssh { .. } => None,
        }
    }
}
