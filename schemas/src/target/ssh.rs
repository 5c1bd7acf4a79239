//! `ssh` of a target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host, or the login node of a cluster, reached with the system's `ssh`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SshTarget {
    /// Host: a name from the ssh configuration, `user@host`, or `ssh://user@host:port`.
    #[schemars(regex(pattern = r"^[!-,.-~][!-~]*$"), extend("examples" = ["box", "ann@box.example.com"]))]
    pub host: String,
    /// Hosts to connect through, as in `ssh -J`. Default: as in the ssh configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[!-,.-~][!-~]*$"), extend("examples" = ["gate.example.com"]))]
    pub jump: Option<String>,
    /// Directory on the host for programs, files and outputs of jobs. Relative paths start at the home directory.
    #[serde(default = "directory")]
    #[schemars(
        regex(pattern = r"^[!-,.-~][^\x00-\x1f]*$"),
        extend("default" = SshTarget::DIRECTORY, "examples" = ["/scratch/ann/jobc"])
    )]
    pub directory: String,
    /// `jobc` on the host: `auto` copies this program there, once per version; a path or name selects an installed one.
    #[serde(default = "jobc")]
    #[schemars(
        regex(pattern = r"^[!-,.-~][^\x00-\x1f]*$"),
        extend("default" = SshTarget::AUTO, "examples" = ["/usr/local/bin/jobc"])
    )]
    pub jobc: String,
}

impl SshTarget {
    /// The default of `directory`.
    pub const DIRECTORY: &str = ".local/share/jobc/submitted";
    /// The value of `jobc` that copies this program.
    pub const AUTO: &str = "auto";
}

fn directory() -> String {
    SshTarget::DIRECTORY.to_owned()
}

fn jobc() -> String {
    SshTarget::AUTO.to_owned()
}
