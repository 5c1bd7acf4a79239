//! Who hears of the start and the end of a job: `notify` of a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A notice: when it is sent, and to whom. Exactly one of `webhook`, `email` and `run` is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// When it is sent.
    #[schemars(length(min = 1), extend("uniqueItems" = true, "examples" = [["failed", "stalled"]]))]
    pub on: Vec<NoticeEvent>,
    /// Secret with the address that gets it, as a POST request with JSON. Slack, Mattermost, Discord and Teams read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["slack"]))]
    pub webhook: Option<String>,
    /// Address that gets it by sendmail(8) of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["ada@example.com"]))]
    pub email: Option<String>,
    /// Command line for `sh` on the host, with `JOBC_NOTICE` (the text), `JOBC_NOTICE_ON`, `JOBC_JOB` and `JOBC_STATE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["ntfy publish mine \"$JOBC_NOTICE\""]))]
    pub run: Option<String>,
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoticeEvent {
    /// The first task runs.
    Started,
    /// A task makes no progress.
    Stalled,
    /// The job has failed, or reached a time limit.
    Failed,
    /// The job has succeeded.
    Succeeded,
}

impl NoticeEvent {
    /// Its name in job files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stalled => "stalled",
            Self::Failed => "failed",
            Self::Succeeded => "succeeded",
        }
    }
}
