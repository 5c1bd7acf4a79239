//! Prints results of tests: what differs for people, everything for programs.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::changes::print as changes;

use super::case::{CaseResult, State, TargetResult};

/// How many jobs had which result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub jobs: usize,
    pub same: usize,
    pub changed: usize,
    pub new: usize,
    pub errors: usize,
    /// How many of the changed and new ones were accepted.
    pub accepted: usize,
    /// How many were not compiled because nothing has changed since they last passed.
    pub cached: usize,
    pub took: Duration,
}

impl Totals {
    pub(super) fn of(results: &[CaseResult], took: Duration) -> Self {
        let mut totals = Self { jobs: results.len(), took, ..Self::default() };
        for result in results {
            match word(result) {
                "error" => totals.errors += 1,
                "same" => totals.same += 1,
                "new" => totals.new += 1,
                _ => totals.changed += 1,
            }
            totals.accepted += usize::from(result.accepted);
            totals.cached += usize::from(result.is_cached);
        }
        totals
    }

    /// How many jobs differ from their golden files.
    pub(super) fn differing(&self) -> usize {
        self.changed + self.new
    }

    /// The last line.
    pub(super) fn text(&self) -> String {
        let mut parts = vec![format!("{} same", self.same)];
        for (count, word) in [(self.changed, "changed"), (self.new, "new"), (self.errors, "with errors")] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        let accepted =
            if self.accepted > 0 { format!("; {} accepted", self.accepted) } else { String::new() };
        let cached = match self.cached {
            0 => String::new(),
            cached => format!("; {cached} unchanged since their last test"),
        };
        let jobs = if self.jobs == 1 { "job file" } else { "job files" };
        format!(
            "{} {jobs}: {} in {:.2} s{accepted}{cached}\n",
            self.jobs,
            parts.join(", "),
            self.took.as_secs_f64()
        )
    }
}

/// The result of a job file in one word.
pub(super) fn word(result: &CaseResult) -> &'static str {
    if result.error.is_some() {
        "error"
    } else if !result.differs() {
        "same"
    } else if result.obsolete.is_empty()
        && result.targets.iter().all(|target| matches!(target.state, State::New))
    {
        "new"
    } else {
        "changed"
    }
}

/// A result for people; nothing if the job is the same.
pub(super) fn text(result: &CaseResult) -> String {
    let word = if result.accepted { "accepted" } else { word(result) };
    if word == "same" {
        return String::new();
    }
    let mut out = format!("{word:8}  {}\n", result.file);
    if let Some(error) = &result.error {
        out += &indented(&error.text);
        return out;
    }
    for target in &result.targets {
        out += &indented(&differences(target));
    }
    for path in &result.obsolete {
        let _ = writeln!(out, "  {}/{path}: the job file has no such job or target", result.golden);
    }
    out
}

/// What differs in a target.
pub(super) fn differences(target: &TargetResult) -> String {
    match &target.state {
        State::Same => String::new(),
        State::New => format!("{} at {}: no golden files\n", target.job, target.target),
        State::Changed(all) => changes::files::print(all, changes::style::Style::Text),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
}

/// The results for programs.
pub(super) fn json(results: &[CaseResult], totals: &Totals) -> Value {
    let target = |target: &TargetResult| {
        let changes = match &target.state {
            State::Changed(all) => changes::files_json(all),
            _ => json!([]),
        };
        json!({
            "job": target.job, "target": target.target, "state": target.state.as_str(), "files": target.files,
            "changes": changes,
        })
    };
    let case = |result: &CaseResult| {
        json!({
            "file": result.file, "result": word(result), "accepted": result.accepted,
            "cached": result.is_cached, "seconds": result.took.as_secs_f64(),
            "targets": result.targets.iter().map(target).collect::<Vec<_>>(),
            "obsolete": result.obsolete, "error": result.error.as_ref().map(|error| &error.summary),
        })
    };
    json!({
        "version": 1, "jobs": totals.jobs, "same": totals.same, "changed": totals.changed, "new": totals.new,
        "errors": totals.errors, "accepted": totals.accepted, "cached": totals.cached, "seconds": totals.took.as_secs_f64(),
        "results": results.iter().map(case).collect::<Vec<_>>(),
    })
}
