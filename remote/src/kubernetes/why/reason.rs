//! A sentence about a job, and the field of the job that it is about.

/// A part of a job that an answer of the cluster is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    /// The image of a role.
    Image,
    /// A resource, by its name in Kubernetes: `nvidia.com/gpu`.
    Resource(String),
    /// Volumes and claims.
    Volumes,
    /// Node labels and tolerations.
    Placement,
    /// User, capabilities and privileges.
    Security,
    /// The command.
    Command,
    /// The queue.
    Queue,
    /// A time limit.
    Timeout,
    /// The role as a whole.
    Role,
}

/// Why a job or a part of it does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    /// One sentence without a full stop.
    pub(crate) text: String,
    /// The role that it is about; none for the whole job.
    pub(crate) role: Option<String>,
    /// The affected part.
    pub(crate) field: Field,
}

impl Reason {
    /// A reason about the whole job.
    pub(crate) fn of_job(text: String, field: Field) -> Self {
        Self { text, role: None, field }
    }
}

/// A message of the cluster as a part of a sentence: one line without a full stop.
pub(crate) fn sentence(message: &str) -> String {
    let line: Vec<&str> = message.split_whitespace().collect();
    line.join(" ").trim_end_matches('.').to_owned()
}

/// The part of a message that begins with a word.
pub(crate) fn from<'a>(message: &'a str, start: &str) -> Option<&'a str> {
    message.find(start).map(|at| &message[at..])
}

/// `1st`, `2nd`, `23rd`, `111th`.
pub(crate) fn ordinal(number: u64) -> String {
    let end = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinal_numbers_are_formatted() {
        let shown: Vec<String> =
            [1, 2, 3, 4, 11, 12, 13, 21, 22, 101, 112].into_iter().map(ordinal).collect();
        assert_eq!(shown.join(" "), "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 101st 112th");
    }

    #[test]
    fn messages_are_one_line() {
        assert_eq!(sentence(" 33 GPUs\n are  too many.\n"), "33 GPUs are too many");
    }
}
