//! The events of a job.

use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Gets events of a job, and can end them.
pub type EventOutput<'a> = &'a mut dyn FnMut(&Event) -> ControlFlow<()>;

/// Something that happened to a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// When it happened last (RFC 3339).
    pub time: String,
    /// The place's word for it.
    pub event: String,
    /// To which task; to the whole job where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// To which attempt of the task, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The object of a cluster that it is about, such as `pod/train-0-abcde`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Whether it is a warning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_warning: bool,
    /// What happened, in words; the event alone may say all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How often, where the place counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// More of it, for programs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}
