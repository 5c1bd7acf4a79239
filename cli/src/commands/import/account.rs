//! `jobc import --explain` and `--list`: what becomes of each part of a file, and of each option of a format.

use jobc_compiler::diagnostic::Sink;
use jobc_compiler::import::{Account, FORMATS, table};
use jobc_compiler::rewrite::RewriteResult;
use jobc_compiler::source::Sources;
use jobc_compiler::suggest;
use serde_json::json;

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::report;
use crate::table::Table;
use crate::terminal;

/// Prints what became of each part of a file; its errors are on stderr.
pub(super) fn explain(
    account: &Account,
    rewritten: &RewriteResult,
    sources: &Sources,
    sink: Sink,
    format: FormatArg,
) -> Outcome {
    let lines = account.lines(sources);
    let is_refused = matches!(rewritten, RewriteResult::Refused);
    if format == FormatArg::Json {
        let document = json!({ "version": 1, "converted": !is_refused, "parts": lines });
        terminal::print(&format!("{document:#}\n"));
        return if is_refused { Outcome::Errors } else { Outcome::Success };
    }
    if lines.is_empty() {
        let outcome = report::findings(sources, sink, format, true);
        if outcome == Outcome::Success {
            terminal::eprint(
                "jobc: `--explain` has a table for each format but jobs of OpenPAI; `jobc import --list` lists them\n",
            );
            return Outcome::UsageError;
        }
        return outcome;
    }
    let mut table = Table::new(["LINE", "SOURCE", "OUTCOME", "BECOMES"]);
    for line in &lines {
        let outcome = line.code.map_or(line.outcome.to_owned(), |code| format!("{} {code}", line.outcome));
        let source = line.source.split_whitespace().collect::<Vec<_>>().join(" ");
        let at = line.file.map_or(line.line.to_string(), |file| format!("{file}:{}", line.line));
        table.row([at, source, outcome, line.becomes.to_owned()]);
    }
    terminal::print(&table.render(terminal::columns_of_stdout()));
    if is_refused { report::findings(sources, sink, format, true) } else { Outcome::Success }
}

/// Prints the formats, or the options of one.
pub(super) fn list(name: &str, format: FormatArg) -> Outcome {
    let is_json = format == FormatArg::Json;
    if name.is_empty() {
        let formats: Vec<_> =
            FORMATS.iter().map(|(name, what)| json!({"name": name, "description": what})).collect();
        if is_json {
            terminal::print(&format!("{:#}\n", json!(formats)));
            return Outcome::Success;
        }
        let mut table = Table::new(["FORMAT", "WHAT"]);
        for (name, what) in FORMATS {
            table.row([(*name).to_owned(), (*what).to_owned()]);
        }
        terminal::print(&table.render(terminal::columns_of_stdout()));
        return Outcome::Success;
    }
    let Some(rows) = table(name) else {
        let names = FORMATS.iter().map(|(name, _)| *name);
        let near = suggest::nearest(name, names.clone()).map(|near| format!("; did you mean `{near}`?"));
        let hint =
            near.unwrap_or_else(|| format!("; the formats are {}", names.collect::<Vec<_>>().join(", ")));
        terminal::eprint(&if FORMATS.iter().any(|(known, _)| *known == name) {
            format!("jobc: `{name}` has no options; docs/reference/{name}.md has its fields\n")
        } else {
            format!("jobc: unknown format `{name}`{hint}\n")
        });
        return Outcome::UsageError;
    };
    if is_json {
        let rows: Vec<_> =
            rows.iter().map(|(option, becomes)| json!({"option": option, "becomes": becomes})).collect();
        terminal::print(&format!("{:#}\n", json!(rows)));
        return Outcome::Success;
    }
    terminal::print(&definitions(&rows, terminal::columns_of_stdout().unwrap_or(MAX_WIDTH).min(MAX_WIDTH)));
    Outcome::Success
}

/// As wide as the help of a command.
const MAX_WIDTH: usize = 100;
/// A longer name has a line of its own.
const MAX_NAME: usize = 28;

/// Names with their texts as in a manual page, wrapped.
fn definitions(rows: &[(String, String)], columns: usize) -> String {
    let is_short = |name: &str| name.chars().count() <= MAX_NAME;
    let names = rows.iter().map(|(name, _)| name).filter(|name| is_short(name));
    let indent = 2 + names.map(|name| name.chars().count()).max().unwrap_or(2);
    let mut out = String::new();
    for (name, text) in rows {
        let mut line = name.clone();
        if !is_short(name) {
            out += &line;
            out.push('\n');
            line.clear();
        }
        let mut used = 0;
        for word in text.split(' ') {
            let length = word.chars().count();
            if used == 0 {
                line = format!("{line:indent$}");
            } else if indent + used + 1 + length > columns {
                out += &line;
                out.push('\n');
                (line, used) = (" ".repeat(indent), 0);
            } else {
                line.push(' ');
                used += 1;
            }
            line += word;
            used += length;
        }
        out += &line;
        out.push('\n');
    }
    out
}
