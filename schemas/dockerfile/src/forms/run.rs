//! Parsed `RUN`.

use super::super::refusal::Span;
use super::word::{ImageOrStage, Word};

/// `RUN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The command, including heredocs.
    pub command: Runs,
    /// `--mount=…`, in order.
    pub mounts: Vec<Mount>,
    /// `--network=…`.
    pub network: Network,
}

/// A command of `RUN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Text for the stage's `SHELL`, including here-documents as the shell expects them.
    Shell(String),
    /// Arguments, the program first.
    Exec(Vec<String>),
    /// A heredoc that begins with `#!`: a file of mode 0755 to execute, which exists only while the command runs.
    Script {
        /// The heredoc's name, which BuildKit uses for the file.
        name: String,
        /// The file.
        content: String,
    },
}

/// `RUN --network=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// The builder's default.
    #[default]
    Default,
    /// Loopback only.
    None,
    /// The host's network.
    Host,
}

/// `RUN --mount=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its span.
    pub span: Span,
    /// The type of the mount with its fields.
    pub kind: MountKind,
    /// The mount point, relative to `WORKDIR`, which is also the default. `None` only for an agent's socket, and for a
    /// secret that is only a variable or at `/run/secrets/ID`.
    pub target: Option<Word>,
    /// Whether it is read-only. Changes to a `bind` mount are discarded in any case.
    pub read_only: bool,
    /// Values with variables that are not text: [`Variables::mount`](crate::Variables::mount) fills them in.
    pub deferred: Vec<(MountField, Word)>,
}

/// A key of a mount whose value is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountField {
    /// `mode`.
    Mode,
    /// `uid`.
    Uid,
    /// `gid`.
    Gid,
    /// `size`.
    Size,
    /// `sharing`.
    Sharing,
    /// `env`.
    Env,
    /// `required`.
    Required,
    /// `ro`, `readonly`.
    ReadOnly,
    /// `rw`, `readwrite`.
    ReadWrite,
}

/// A `RUN --mount=type=…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountKind {
    /// Files of the context, a stage or an image.
    Bind {
        /// The stage or image; the context if `None`.
        from: Option<ImageOrStage>,
        /// A path in it; the root if `None`.
        source: Option<Word>,
    },
    /// A cache directory that is kept between builds.
    Cache {
        /// The ID of the cache. Default: the target.
        id: Option<Word>,
        /// How concurrent builds share it.
        sharing: Sharing,
        /// The initial content.
        from: Option<ImageOrStage>,
        /// The directory in `from`.
        source: Option<Word>,
        /// Permissions if it is created; 0755 if `None`.
        mode: Option<u32>,
        /// Owner if it is created; 0 if `None`.
        uid: Option<u32>,
        /// Group if it is created; 0 if `None`.
        gid: Option<u32>,
    },
    /// A tmpfs.
    Tmpfs {
        /// Maximum size in bytes.
        size: Option<u64>,
    },
    /// A secret of the user who builds.
    Secret {
        /// Its ID: `id`, else `source`, else the last component of the target.
        id: Word,
        /// The variable for its value; only a file if `None`.
        env: Option<String>,
        /// Whether the build fails without it.
        required: bool,
        /// Permissions; 0400 if `None`.
        mode: Option<u32>,
        /// Owner; 0 if `None`.
        uid: Option<u32>,
        /// Group; 0 if `None`.
        gid: Option<u32>,
    },
    /// A socket of the SSH agent of the user who builds.
    Ssh {
        /// Its ID; `default` if `None`.
        id: Option<Word>,
        /// Whether the build fails without it.
        required: bool,
        /// Permissions; 0600 if `None`.
        mode: Option<u32>,
        /// Owner; 0 if `None`.
        uid: Option<u32>,
        /// Group; 0 if `None`.
        gid: Option<u32>,
    },
}

/// `sharing=` of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Used by several builds at once.
    #[default]
    Shared,
    /// A separate directory for each concurrent build.
    Private,
    /// Used by one build at a time.
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
