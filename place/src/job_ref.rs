//! The names of jobs on the command line: `train`, `train.3`, `lab/train`.

use std::fmt;
use std::str::FromStr;

/// A job or a sweep, here or at a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobRef {
    /// On this host: an ID such as `train.3`, or a name for its newest run.
    Local(String),
    /// At a target.
    Remote(Handle),
}

impl JobRef {
    /// Whether a word is a handle: IDs and names of this host have no `/`.
    pub fn is_handle(word: &str) -> bool {
        word.contains('/')
    }
}

impl FromStr for JobRef {
    type Err = HandleError;

    fn from_str(word: &str) -> Result<Self, HandleError> {
        if Self::is_handle(word) { word.parse().map(Self::Remote) } else { Ok(Self::Local(word.to_owned())) }
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(word) => f.write_str(word),
            Self::Remote(handle) => handle.fmt(f),
        }
    }
}

/// A job at a target: `lab/gpt-small-7f3k2`, or `lab/gpt-small` for the newest run of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The target's name in the targets file.
    pub target: String,
    /// The name of a run, or of a job.
    pub name: String,
}

/// A word with a `/` that is not a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandleError(String);

impl FromStr for Handle {
    type Err = HandleError;

    fn from_str(word: &str) -> Result<Self, HandleError> {
        let allowed = |text: &str| {
            !text.is_empty()
                && text.len() <= 253
                && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
        };
        match word.split_once('/') {
            Some((target, name)) if allowed(target) && allowed(name) => {
                Ok(Self { target: target.to_owned(), name: name.to_owned() })
            }
            _ => Err(HandleError(word.to_owned())),
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.target, self.name)
    }
}

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a handle; write `TARGET/NAME`, such as `lab/gpt-small-7f3k2`", self.0)
    }
}

impl std::error::Error for HandleError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_target_and_a_name() {
        let handle: Handle = "lab/gpt-small-7f3k2".parse().unwrap();
        assert_eq!((handle.target.as_str(), handle.name.as_str()), ("lab", "gpt-small-7f3k2"));
        assert_eq!(handle.to_string(), "lab/gpt-small-7f3k2");
        for wrong in ["lab/", "/x", "lab", "a/b/c", "Lab/x", "lab/x y", "lab/../x"] {
            assert!(wrong.parse::<Handle>().is_err(), "{wrong}");
        }
        assert_eq!("train.2".parse(), Ok(JobRef::Local("train.2".to_owned())));
        assert_eq!("lab/x".parse::<JobRef>().unwrap().to_string(), "lab/x");
        assert!("lab/".parse::<JobRef>().is_err());
    }
}
