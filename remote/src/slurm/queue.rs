//! The answer of `squeue`, one row for each Slurm job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::time::seconds;

/// Between the fields: a character that no field has.
const SEPARATOR: char = '\x1f';
/// The requested fields: id, state, reason, start, end, nodes, dependency, comment, name.
pub(crate) const FORMAT: &str = "%i\x1f%T\x1f%r\x1f%S\x1f%e\x1f%N\x1f%E\x1f%k\x1f%j";

/// A Slurm job in the queue.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct QueueRow {
    /// `PENDING`, `RUNNING`, ...
    pub(crate) state: String,
    /// Why it waits or ended: a keyword or a sentence.
    pub(crate) reason: String,
    /// When it started, or is expected to.
    pub(crate) started: Option<u64>,
    /// When it ended.
    pub(crate) ended: Option<u64>,
    /// Its nodes, such as `n[0-3]`.
    pub(crate) nodes: String,
    /// The dependency that it waits for, such as `afterok:12(unfulfilled)`.
    pub(crate) dependency: String,
    /// The comment.
    pub(crate) comment: String,
    /// The name.
    pub(crate) name: String,
}

impl QueueRow {
    /// Whether it is a Slurm job of a run, by its name or its comment. Ids repeat after a cluster is set up again. The
    /// task of an array has the name and comment of the array.
    pub(crate) fn is_of(&self, run: &str) -> bool {
        let follows = |text: &str, between: char| {
            text.strip_prefix(run).is_some_and(|rest| rest.is_empty() || rest.starts_with(between))
        };
        let of_array = self.comment.starts_with("jobc:") && self.comment.ends_with(":array");
        let of_comment = self.comment.strip_prefix("jobc:").is_some_and(|rest| follows(rest, ':'));
        follows(&self.name, '-') || of_comment || of_array
    }
}

/// The jobs of an answer by id: `12`, or `12_3` in an array. Of a heterogeneous job it is the first component.
pub(crate) fn parse(text: &str) -> BTreeMap<String, QueueRow> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(SEPARATOR).collect();
        let [id, state, reason, started, ended, nodes, dependency, comment, name] = fields[..] else {
            continue;
        };
        let id = match id.split_once('+') {
            Some((leader, "0")) => leader,
            Some(_) => continue,
            None => id,
        };
        let none = |text: &str| if matches!(text, "(null)" | "None assigned") { "" } else { text }.to_owned();
        let row = QueueRow {
            state: state.to_owned(),
            reason: none(reason),
            started: seconds(started),
            ended: seconds(ended),
            nodes: none(nodes),
            dependency: none(dependency),
            comment: none(comment),
            name: name.to_owned(),
        };
        found.insert(id.to_owned(), row);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_again_is_another_job() {
        let row = |name: &str, comment: &str| QueueRow {
            name: name.to_owned(),
            comment: comment.to_owned(),
            ..QueueRow::default()
        };
        for (name, comment, is_of) in [
            ("x-1a", "jobc:x-1a:9:job", true),
            ("x-1a", "", true),
            ("x-1a-train", "a site's own", true),
            ("renamed", "jobc:x-1a:9:train", true),
            ("x", "jobc:x-0-2b:9:array", true),
            ("x-1ab", "jobc:x-1ab:9:job", false),
            ("x", "jobc:x-1:9:job", false),
            ("bash", "", false),
        ] {
            assert_eq!(row(name, comment).is_of("x-1a"), is_of, "{name} {comment}");
        }
    }

    #[test]
    fn rows_have_nine_fields() {
        let line = |id: &str, state: &str, reason: &str, dependency: &str| {
            [id, state, reason, "N/A", "N/A", "n[0-1]", dependency, "jobc:x:1:job", "x"].join("\x1f")
        };
        let text = [
            line("7", "PENDING", "Nodes required for job are DOWN, DRAINED", "(null)"),
            line("8+0", "RUNNING", "None", "(null)"),
            line("8+1", "PENDING", "None", "(null)"),
            line("9_3", "PENDING", "Dependency", "afterok:7(unfulfilled)"),
            "slurm_load_jobs error".to_owned(),
        ];
        let found = parse(&text.join("\n"));
        assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), ["7", "8", "9_3"]);
        assert_eq!(found["7"].reason, "Nodes required for job are DOWN, DRAINED");
        assert_eq!((found["8"].state.as_str(), found["8"].started), ("RUNNING", None));
        assert_eq!(found["9_3"].dependency, "afterok:7(unfulfilled)");
        assert_eq!(FORMAT.split(SEPARATOR).count(), 9);
    }
}
