//! Files of a role: mounted volumes, and small files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::Text;

/// A volume that a role mounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountPlan {
    /// Volume: a name in `volumes` of the job.
    pub volume: String,
    /// Mount point in the role: an absolute path.
    pub path: String,
    /// Whether the role can write to it.
    pub writable: bool,
    /// Directory in the volume that is mounted instead of all of it: a relative path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subpath: Option<String>,
}

/// A small file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilePlan {
    /// Absolute path.
    pub path: String,
    /// Content.
    pub content: FileContent,
    /// Permission bits as a decimal number: 0644 is 420.
    pub mode: u32,
}

impl FilePlan {
    /// Whether all users have the permissions of the owner: to read and execute the file.
    pub fn is_for_all(&self) -> bool {
        self.mode & 0o500 == (self.mode & 0o005) << 6
    }
}

/// Content of a small file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FileContent {
    /// The value of a secret.
    Secret {
        /// The secret's name.
        secret: String,
    },
    /// Text.
    Text(Text),
}
