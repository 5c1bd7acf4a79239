//! Limits that are not enforced, for the record and for users.

use std::fmt;

use serde::{Deserialize, Serialize};

use jobc_sys::error::Error;

/// A limit of config.json that is not enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnenforcedLimit {
    /// The field: a JSON Pointer into config.json.
    pub place: String,
    /// The reason.
    pub reason: String,
}

/// How a line of [`UnenforcedLimit::in_words`] begins.
const IN_WORDS: &str = "limits on ";

impl fmt::Display for UnenforcedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl UnenforcedLimit {
    /// Unenforced limits, for users: one line per reason, with the limits in the terms of the job file.
    ///
    /// Reasons that differ only in the group are merged: with cgroup v1 every controller has its own tree.
    pub fn in_words(all: &[Self]) -> Vec<String> {
        let kind = |reason: &str| reason.split('`').next().map(str::to_owned);
        let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
        for Self { place, reason } in all {
            let limited = place.strip_prefix("/linux/resources/").unwrap_or(place);
            let limited = limited.split('/').next().unwrap_or(limited);
            match lines.iter_mut().find(|(first, _)| kind(first) == kind(reason)) {
                Some((_, list)) if list.contains(&limited) => {}
                Some((_, list)) => list.push(limited),
                None => lines.push((reason, vec![limited])),
            }
        }
        let line = |(reason, limited): (&str, Vec<&str>)| {
            let list = limited.iter().map(|limited| format!("`{limited}`")).collect::<Vec<_>>().join(", ");
            format!("{IN_WORDS}{list} are not enforced: {reason}")
        };
        lines.into_iter().map(line).collect()
    }
}

impl UnenforcedLimit {
    /// Whether a text is a line of [`Self::in_words`].
    pub fn is_in_words(line: &str) -> bool {
        line.starts_with(IN_WORDS)
    }
}

impl From<Error> for UnenforcedLimit {
    fn from(error: Error) -> Self {
        Self { place: error.pointer().unwrap_or_default().to_owned(), reason: error.message() }
    }
}

#[cfg(test)]
mod tests {
    use super::UnenforcedLimit;

    #[test]
    fn unenforced_limits_have_a_line_a_reason() {
        let of = |place: &str, reason: &str| UnenforcedLimit {
            place: place.to_owned(),
            reason: reason.to_owned(),
        };
        let reported = UnenforcedLimit::in_words(&[
            of("/linux/resources/pids/limit", "not in `/pids`"),
            of("/linux/resources/memory/limit", "not in `/memory`"),
            of("/linux/resources/memory/swap", "not in `/memory`"),
            of("/linux/resources/devices", "there are none"),
        ]);
        assert_eq!(
            reported,
            [
                "limits on `pids`, `memory` are not enforced: not in `/pids`",
                "limits on `devices` are not enforced: there are none",
            ]
        );
    }
}
