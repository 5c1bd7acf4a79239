//! The answer of `squeue`, one row for each Slurm job.

use std::collections::BTreeMap;

use super::time::seconds;

/// Between the fields: a character that no field has.
const SEPARATOR: char = '\x1f';
/// What is asked: id, state, reason, start, end, nodes, dependency, comment.
pub(crate) const FORMAT: &str = "%i\x1f%T\x1f%r\x1f%S\x1f%e\x1f%N\x1f%E\x1f%k";

/// A Slurm job in the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueRow {
    /// `PENDING`, `RUNNING`, ...
    pub(crate) state: String,
    /// Why it waits, or ended: a word or a sentence.
    pub(crate) reason: String,
    /// When it started, or is expected to.
    pub(crate) started: Option<u64>,
    /// When it ended.
    pub(crate) ended: Option<u64>,
    /// Its nodes, such as `n[0-3]`.
    pub(crate) nodes: String,
    /// What it waits for, such as `afterok:12(unfulfilled)`.
    pub(crate) dependency: String,
    /// The comment.
    pub(crate) comment: String,
}

/// The jobs of an answer by id: `12`, or `12_3` in an array. Of a heterogeneous job it is the first component.
pub(crate) fn parse(text: &str) -> BTreeMap<String, QueueRow> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(SEPARATOR).collect();
        let [id, state, reason, started, ended, nodes, dependency, comment] = fields[..] else { continue };
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
        };
        found.insert(id.to_owned(), row);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_eight_fields() {
        let line = |id: &str, state: &str, reason: &str, dependency: &str| {
            [id, state, reason, "N/A", "N/A", "n[0-1]", dependency, "jobc:x:1:job"].join("\x1f")
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
        assert_eq!(FORMAT.split(SEPARATOR).count(), 8);
    }
}
