//! Where a job is in its life, with the same words at every place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Where a job is in its life.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum JobState {
    /// It waits for room on the host, or for its turn.
    #[default]
    Queued,
    /// It is held back on a cluster: by its submission, its queue or a user.
    Suspended,
    /// It is on a cluster, and no task runs yet.
    Pending,
    /// Data and roots are being fetched, and the network created.
    Preparing,
    /// Tasks run, or wait for others.
    Running,
    /// Everything is frozen.
    Paused,
    /// Running tasks are being stopped.
    Stopping,
    /// It succeeded.
    Succeeded,
    /// It ended badly, or could not start.
    Failed,
    /// It was ended for taking too long.
    TimedOut,
    /// It was stopped by a user, or deleted.
    Stopped,
    /// Its supervisor was killed.
    Lost,
}

impl JobState {
    /// All states, in about the order of a life.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    /// Whether this state is final.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::TimedOut | Self::Stopped | Self::Lost)
    }

    /// Whether none of its tasks was started yet.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::Queued | Self::Suspended | Self::Pending | Self::Preparing)
    }

    /// The word that records and tables use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// What a sentence about a job says: `is running`, `has succeeded`.
    pub fn clause(self) -> String {
        let verb = match self {
            Self::Succeeded | Self::Failed | Self::TimedOut => "has",
            Self::Stopped | Self::Lost => "was",
            _ => "is",
        };
        format!("{verb} {}", self.as_str().replace('-', " "))
    }

    /// The exit code of `jobc wait` where the end of a job says nothing else.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::TimedOut => 124,
            Self::Lost => 125,
            Self::Stopped => 130,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_written_as_tables_show_it() {
        for state in [JobState::Queued, JobState::TimedOut, JobState::Lost] {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.as_str()));
        }
    }
}
