//! The IDs of jobs and tasks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

/// The word for every role where a role can be named.
pub const EVERY_ROLE: &str = "*";

/// One run of a job: its name and a number that grows with each run, such as `resnet50.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId {
    /// The job's name: a DNS label (the plan has checked it).
    pub name: String,
    /// The run, from 1.
    pub run: u32,
}

/// One instance of a role: `worker-3`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId {
    /// The role.
    pub role: String,
    /// The instance, from 0.
    pub index: u32,
}

impl TaskId {
    /// The instance of a role.
    pub fn new(role: impl Into<String>, index: u32) -> Self {
        Self { role: role.into(), index }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name, self.run)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.role, self.index)
    }
}

/// A name as jobs and roles have it; it becomes the name of a directory.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= 63 && name.chars().all(plain) && !name.starts_with('-')
}

/// A number as [`fmt::Display`] writes it: no sign and no leading zero, so that every id has one spelling.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

impl FromStr for JobId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('.').filter(|(name, _)| is_name(name));
        parts
            .and_then(|(name, run)| Some(Self { name: name.to_owned(), run: number(run).filter(|&run| run > 0)? }))
            .ok_or_else(|| {
                Error::new(Kind::State, format!("invalid job id `{}`", text.escape_debug()))
                    .help("a job id is the job name and the run number, such as `train.1`; `jobc ps --all` lists them")
            })
    }
}

impl FromStr for TaskId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.rsplit_once('-').filter(|(role, _)| is_name(role));
        parts.and_then(|(role, index)| Some(Self::new(role, number(index)?))).ok_or_else(|| {
            Error::new(Kind::State, format!("invalid task name `{}`", text.escape_debug()))
                .help("a task name is the role and the instance number, such as `worker-0`")
        })
    }
}

macro_rules! as_string {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(id: $type) -> Self {
                id.to_string()
            }
        }
    };
}

as_string!(JobId);
as_string!(TaskId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        for text in ["train.1", "a-b-0.12", "1a.3"] {
            assert_eq!(text.parse::<JobId>().unwrap().to_string(), text);
        }
        for text in
            ["train", "train.0", "train.01", "train.+1", "../x.1", ".1", "a/b.1", "a.1.2", "-a.1", "Ä.1"]
        {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
        for text in ["worker-0", "parameter-server-12"] {
            assert_eq!(text.parse::<TaskId>().unwrap().to_string(), text);
        }
        for text in ["worker", "worker-", "worker-01", "worker--1", "-0", "../a-0"] {
            assert!(text.parse::<TaskId>().is_err() || text == "worker--1", "{text}");
        }
    }
}
