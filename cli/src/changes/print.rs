//! Prints changes: as text, as Markdown for the comment of a pull request, as JSON.

use std::fmt::Write as _;

use jobc_compiler::why::source_map::{Part, dotted};
use jobc_schema::plural;
use serde_json::{Value, json};

use crate::origins::tasks::without_index;

use super::compare::{Change, FileChange, FileChangeKind};

/// Maximum number of characters of a value that are printed.
const MAX_VALUE_LEN: usize = 60;
/// Maximum number of files that are printed. Tasks with the same changes count as one.
const MAX_FILES: usize = 40;
/// Maximum number of changes of a file that are printed.
const MAX_CHANGES: usize = 20;

/// Files with the same changes: those of the tasks of a role.
struct Group<'a> {
    first: &'a FileChange,
    others: usize,
}

fn groups(changes: &[FileChange]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = vec![];
    for change in changes {
        let same = |group: &&mut Group<'_>| {
            let first = group.first;
            (&first.job, &first.target) == (&change.job, &change.target)
                && without_index(&first.path) == without_index(&change.path)
                && has_same_changes(&first.kind, &change.kind)
        };
        match groups.iter_mut().rev().find(same) {
            Some(group) => group.others += 1,
            None => groups.push(Group { first: change, others: 0 }),
        }
    }
    groups
}

fn has_same_changes(a: &FileChangeKind, b: &FileChangeKind) -> bool {
    match (a, b) {
        (FileChangeKind::Added, FileChangeKind::Added)
        | (FileChangeKind::Removed, FileChangeKind::Removed) => true,
        (FileChangeKind::Changed(a), FileChangeKind::Changed(b)) => a == b,
        _ => false,
    }
}

/// The changes for people.
pub(crate) fn text(changes: &[FileChange], base: &str) -> String {
    let mut out = String::new();
    let mut heading = (String::new(), String::new());
    let groups = groups(changes);
    for group in groups.iter().take(MAX_FILES) {
        let file = group.first;
        if heading != (file.job.clone(), file.target.clone()) {
            let _ = writeln!(out, "{} at {}", file.job, file.target);
            heading = (file.job.clone(), file.target.clone());
        }
        let _ = writeln!(out, "  {}{}{}", file.path, suffix(&file.kind), others(group));
        if let FileChangeKind::Changed(changes) = &file.kind {
            for change in changes.iter().take(MAX_CHANGES) {
                let _ = writeln!(out, "    {}: {}", change.place, values(change));
                if let Some(cause) = change.cause.as_ref().and_then(cause) {
                    let _ = writeln!(out, "      by {cause}");
                }
            }
            if let Some(more) = more(changes.len(), MAX_CHANGES) {
                let _ = writeln!(out, "    and {more} more; `--format json` prints all");
            }
        }
    }
    if let Some(more) = more(groups.len(), MAX_FILES) {
        let _ = writeln!(out, "and {more} more files; `--format json` prints all");
    }
    if out.is_empty() {
        out = format!("no difference from `{base}`\n");
    }
    out
}

/// The changes as the comment of a pull request.
pub(crate) fn markdown(changes: &[FileChange], base: &str) -> String {
    if changes.is_empty() {
        return format!("**jobc**: no difference from `{base}` in the plan or in any file.\n");
    }
    let groups = groups(changes);
    let mut out = format!("**jobc**: {} changed, compared with `{base}`\n", plural(changes.len(), "file"));
    let mut heading = (String::new(), String::new());
    for group in groups.iter().take(MAX_FILES) {
        let file = group.first;
        if heading != (file.job.clone(), file.target.clone()) {
            let _ = writeln!(out, "\n### `{}` at `{}`", file.job, file.target);
            heading = (file.job.clone(), file.target.clone());
        }
        let _ = writeln!(out, "\n`{}`{}{}\n", file.path, suffix(&file.kind), others(group));
        if let FileChangeKind::Changed(changes) = &file.kind {
            out += "| field | old | new | cause |\n|---|---|---|---|\n";
            for change in changes.iter().take(MAX_CHANGES) {
                let cause = change.cause.as_ref().and_then(cause).unwrap_or_default();
                let (old, new) = cells(change);
                let cell = |text: Option<String>| text.map_or(String::new(), |text| code(&text));
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} |",
                    code(&change.place),
                    cell(old),
                    cell(new),
                    cause.replace('|', "\\|")
                );
            }
            if let Some(more) = more(changes.len(), MAX_CHANGES) {
                let _ = writeln!(out, "\nand {more} more");
            }
        }
    }
    if let Some(more) = more(groups.len(), MAX_FILES) {
        let _ = writeln!(out, "\nand {more} more files");
    }
    out
}

/// Text as code in a cell of a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}

/// The changes for programs: all of them.
pub(crate) fn json(changes: &[FileChange]) -> Value {
    let file = |file: &FileChange| {
        let (state, changes) = match &file.kind {
            FileChangeKind::Added => ("added", vec![]),
            FileChangeKind::Removed => ("removed", vec![]),
            FileChangeKind::Changed(changes) => ("changed", changes.iter().map(change_json).collect()),
        };
        json!({"job": file.job, "target": file.target, "file": file.path, "state": state, "changes": changes})
    };
    json!({"files": changes.iter().map(file).collect::<Vec<_>>()})
}

fn change_json(change: &Change) -> Value {
    let cause = change.cause.as_ref().map(|part| {
        json!({"spec": part.spec, "file": part.file, "start": part.start, "target": part.target, "default": part.default})
    });
    json!({"place": change.place, "old": change.old, "new": change.new, "cause": cause})
}

fn suffix(kind: &FileChangeKind) -> &'static str {
    match kind {
        FileChangeKind::Added => " is new",
        FileChangeKind::Removed => " is gone",
        FileChangeKind::Changed(_) => "",
    }
}

fn others(group: &Group<'_>) -> String {
    if group.others == 0 { String::new() } else { format!(" (and {})", plural(group.others, "more task")) }
}

fn more(all: usize, shown: usize) -> Option<usize> {
    all.checked_sub(shown).filter(|more| *more > 0)
}

fn values(change: &Change) -> String {
    match cells(change) {
        (Some(old), Some(new)) => format!("{old} -> {new}"),
        (None, Some(new)) => format!("new: {new}"),
        (Some(old), None) => format!("gone: {old}"),
        (None, None) => String::new(),
    }
}

/// Both values, each on one line. Long values with a common prefix are cut to start shortly before the difference.
fn cells(change: &Change) -> (Option<String>, Option<String>) {
    let text =
        |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned).replace('\n', "\\n");
    let (old, new) = (change.old.as_ref().map(text), change.new.as_ref().map(text));
    let is_long = |text: &String| text.chars().count() > MAX_VALUE_LEN;
    let mut from = 0;
    if let (Some(old), Some(new)) = (&old, &new)
        && (is_long(old) || is_long(new))
    {
        let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
        from = same.saturating_sub(MAX_VALUE_LEN / 3);
    }
    let cut = |text: String| -> String {
        let count = text.chars().count();
        let shown: String = text.chars().skip(from).take(MAX_VALUE_LEN).collect();
        let (before, after) =
            (if from > 0 { "…" } else { "" }, if count > from + MAX_VALUE_LEN { "…" } else { "" });
        format!("{before}{shown}{after}")
    };
    (old.map(cut), new.map(cut))
}

/// What caused a change, in one line.
fn cause(part: &Part) -> Option<String> {
    if let Some(spec) = &part.spec {
        let [line, _] = part.start?;
        return Some(format!("`{}` at {}:{line}", dotted(spec), part.file.as_deref().unwrap_or("job.yaml")));
    }
    if let Some(setting) = &part.target {
        return Some(format!("the setting `{}` of the target", dotted(setting)));
    }
    part.default.clone()
}
