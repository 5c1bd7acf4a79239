//! Handles: the names of jobs that run elsewhere, `TARGET/NAME`.

use std::fmt;
use std::str::FromStr;

/// A job at a target: `lab/gpt-small-7f3k2`, or `lab/gpt-small` for the newest run of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The target's name in the targets file.
    pub target: String,
    /// The name of a run, or of a job.
    pub name: String,
}

impl Handle {
    /// Whether an argument is a handle: ids and names of local jobs have no `/`.
    pub fn is_meant(word: &str) -> bool {
        word.contains('/')
    }
}

impl FromStr for Handle {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let allowed = |text: &str| {
            !text.is_empty()
                && text.len() <= 253
                && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
        };
        match word.split_once('/') {
            Some((target, name)) if allowed(target) && allowed(name) => {
                Ok(Self { target: target.to_owned(), name: name.to_owned() })
            }
            _ => Err(format!("`{word}` is not a handle; write `TARGET/NAME`, such as `lab/gpt-small-7f3k2`")),
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.target, self.name)
    }
}

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
        assert!(Handle::is_meant("lab/x") && !Handle::is_meant("train.2"));
    }
}
