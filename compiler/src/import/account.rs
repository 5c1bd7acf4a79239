//! What became of each part of a file of another tool: `jobc import --explain` prints it.

use serde::Serialize;

use crate::diagnostic::{Code, Diagnostic, Severity, Sink, codes};
use crate::source::{Sources, Span};

/// Why the value of an option on its own needs no field.
pub(super) const VALUE: &str = "the value of the option before it";

/// What became of every directive, option or key, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    rows: Vec<Row>,
}

/// One part of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where it is.
    pub span: Span,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is this field of the job file.
    Field(String),
    /// It is a setting of a target, which belongs in `targets.yaml`.
    Target(String),
    /// It needs no field; why.
    Note(String),
    /// A finding says what to do.
    Finding(Code, String),
}

/// A row as `--format json` prints it.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// The path of a file beside the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<&'a str>,
    /// The line of the file, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The text of the part.
    pub source: &'a str,
    /// `field`, `target`, `note` or `finding`.
    pub outcome: &'static str,
    /// The field, the setting, the reason or the message.
    pub becomes: &'a str,
    /// The code of a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
}

impl Account {
    /// Adds a part that became a field.
    pub(super) fn field(&mut self, span: Span, path: impl Into<String>) {
        self.rows.push(Row { span, outcome: Outcome::Field(path.into()) });
    }

    /// Adds a part that is a setting of a target.
    pub(super) fn target(&mut self, span: Span, path: impl Into<String>) {
        self.rows.push(Row { span, outcome: Outcome::Target(path.into()) });
    }

    /// Adds a part that needs no field.
    pub(super) fn note(&mut self, span: Span, why: impl Into<String>) {
        self.rows.push(Row { span, outcome: Outcome::Note(why.into()) });
    }

    /// Adds a part that a finding is about.
    pub(super) fn finding(&mut self, span: Span, found: &Diagnostic) {
        self.rows.push(Row { span, outcome: Outcome::Finding(found.code, found.message.clone()) });
    }

    /// Adds the rows of another part of the file that are not there yet, where fields below `from` are below `to`.
    pub(super) fn extend(&mut self, other: &Self, from: &str, to: &str) {
        for row in &other.rows {
            let mut row = row.clone();
            if let Outcome::Field(path) = &mut row.outcome
                && let Some(rest) = path.strip_prefix(from).filter(|_| !from.is_empty())
            {
                *path = format!("{to}{rest}");
            }
            if !self.rows.contains(&row) {
                self.rows.push(row);
            }
        }
    }

    /// The rows in the order of the file, each part once for each thing that became of it.
    pub fn rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| (row.span.source, row.span.start));
        rows.dedup();
        rows
    }

    /// The rows as they are printed.
    pub fn lines<'a>(&'a self, sources: &'a Sources) -> Vec<Line<'a>> {
        let first = self.rows().first().map(|row| row.span.source);
        let line = |row: &'a Row| {
            let file = sources.get(row.span.source).path();
            let at = sources.get(row.span.source).line_column(row.span.start);
            let (outcome, becomes, code) = match &row.outcome {
                Outcome::Field(path) => ("field", path, None),
                Outcome::Target(path) => ("target", path, None),
                Outcome::Note(why) => ("note", why, None),
                Outcome::Finding(code, message) => ("finding", message, Some(code.as_str())),
            };
            Line {
                file: (Some(row.span.source) != first).then_some(file.as_str()),
                line: at.line,
                column: at.column,
                source: sources.slice(row.span),
                outcome,
                becomes: becomes.as_str(),
                code,
            }
        };
        self.rows().into_iter().map(line).collect()
    }

    /// Reports the parts that have no field here, in one note each for those without meaning and those of a target.
    pub(super) fn summarize(&self, sources: &Sources, sink: &mut Sink) {
        let of = |wanted: fn(&Outcome) -> bool| -> Vec<&Row> {
            self.rows().into_iter().filter(|row| wanted(&row.outcome)).collect()
        };
        let mut dropped = of(|outcome| matches!(outcome, Outcome::Note(_)));
        // What every script has.
        dropped.retain(|row| !sources.slice(row.span).starts_with("#!"));
        // An item of a list in braces has no name.
        dropped.retain(|row| !sources.slice(row.span).starts_with('{'));
        dropped.retain(|row| !matches!(&row.outcome, Outcome::Note(why) if why == VALUE));
        let settings = of(|outcome| matches!(outcome, Outcome::Target(_)));
        let notes = [
            (
                codes::IMPORT_DROPPED,
                dropped,
                "need no field in a job file",
                "`jobc import --explain` says why of each",
            ),
            (
                codes::IMPORT_TARGET,
                settings,
                "are settings of a cluster, not of the job",
                "`jobc import --targets targets.yaml` writes them to a targets file",
            ),
        ];
        for (code, rows, what, note) in notes {
            let Some(first) = rows.first() else { continue };
            let mut names: Vec<String> = Vec::new();
            for row in &rows {
                let text = sources.slice(row.span).trim_start_matches('{');
                let name = text.split(['=', ' ', '\n']).next().unwrap_or(text);
                let name = name.trim_end_matches(':').trim_matches('"').to_owned();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            let more = names.len().saturating_sub(6);
            let shown: Vec<String> = names.iter().take(6).map(|name| format!("`{name}`")).collect();
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            let verb = if names.len() == 1 {
                what.replacen("need ", "needs ", 1).replacen("are settings", "is a setting", 1)
            } else {
                what.to_owned()
            };
            let found = Diagnostic::new(code, Severity::Note, format!("{}{rest} {verb}", shown.join(", ")));
            sink.push(found.at_span(first.span, "").note(note));
        }
    }
}
