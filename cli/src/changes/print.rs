//! Prints changes: as text, as Markdown for the comment of a pull request, as JSON.

mod fields;
pub(crate) mod files;
mod names;
pub(crate) mod style;
mod values;

use jobc_schema::plural;
use serde_json::{Value, json};

use super::compare::{Change, FileChange, FileChangeKind};
use super::summary::FieldChange;
use super::{Comparison, OptionChange};
use style::Style;

/// The changes for people: of the jobs, and of the files if they are wanted or are all that changed.
pub(crate) fn text(changes: &Comparison, base: &str, artifacts: bool) -> String {
    if changes.files.is_empty() {
        return format!("no difference from `{base}`\n{}", options(changes));
    }
    let out = fields_and_files(changes, artifacts);
    format!("{out}{}", options(changes))
}

/// The options of Slurm that differ, one a line.
fn options(changes: &Comparison) -> String {
    if changes.options.is_empty() {
        return String::new();
    }
    let mut out = "\noptions of sbatch that differ in the script that jobc writes:\n".to_owned();
    let option = |name: &str, value: Option<&String>| match value {
        None => "absent".to_owned(),
        Some(value) if value.is_empty() => format!("--{name}"),
        Some(value) => format!("--{name}={value}"),
    };
    for OptionChange { target, option: name, old, new } in &changes.options {
        let line = format!("  {target}: {} -> {}\n", option(name, old.as_ref()), option(name, new.as_ref()));
        out.push_str(&line);
    }
    out
}

fn fields_and_files(changes: &Comparison, artifacts: bool) -> String {
    let mut out = fields::print(&changes.fields.all, Style::Text);
    if out.is_empty() {
        return files::print(&changes.files, Style::Text);
    }
    if artifacts {
        return format!("{out}\n{}", files::print(&changes.files, Style::Text));
    }
    if let Some(counts) = files::counts(&changes.files) {
        out += &format!("built files: {counts}; `--artifacts` prints what changed in them\n");
    }
    out
}

/// The changes as the comment of a pull request.
pub(crate) fn markdown(changes: &Comparison, base: &str) -> String {
    if changes.files.is_empty() {
        return format!("**jobc**: no difference from `{base}` in the plan or in any file.\n");
    }
    let number = plural(changes.files.len(), "file");
    let fields = fields::print(&changes.fields.all, Style::Markdown);
    let files = files::print(&changes.files, Style::Markdown);
    format!(
        "**jobc**: compared with `{base}`\n{fields}\n<details><summary>{number} changed</summary>\n{files}\n</details>\n"
    )
}

/// The changes for programs: all of them.
pub(crate) fn json(changes: &Comparison) -> Value {
    json!({
        "fields": changes.fields.all.iter().map(field_json).collect::<Vec<_>>(),
        "files": files_json(&changes.files),
        "options": changes.options.iter().map(option_json).collect::<Vec<_>>(),
    })
}

fn option_json(change: &OptionChange) -> Value {
    json!({"target": change.target, "option": change.option, "old": change.old, "new": change.new})
}

fn field_json(change: &FieldChange) -> Value {
    let jobs = change.jobs.iter().map(|it| json!({"job": it.job, "target": it.target}));
    let causes = change.causes.iter().map(|(file, line)| json!({"file": file, "line": line}));
    json!({
        "field": change.field,
        "roles": change.roles.iter().map(|role| &role.name).collect::<Vec<_>>(),
        "jobs": jobs.collect::<Vec<_>>(),
        "old": change.old,
        "new": change.new,
        "causes": causes.collect::<Vec<_>>(),
    })
}

/// The changed files for programs.
pub(crate) fn files_json(changes: &[FileChange]) -> Value {
    let file = |file: &FileChange| {
        let (state, changes) = match &file.kind {
            FileChangeKind::Added => ("added", vec![]),
            FileChangeKind::Removed => ("removed", vec![]),
            FileChangeKind::Changed(changes) => ("changed", changes.iter().map(change_json).collect()),
        };
        json!({"job": file.job, "target": file.target, "file": file.path, "state": state, "changes": changes})
    };
    changes.iter().map(file).collect()
}

fn change_json(change: &Change) -> Value {
    let cause = change.cause.as_ref().map(|part| {
        json!({"spec": part.spec, "file": part.file, "start": part.start, "target": part.target, "default": part.default})
    });
    json!({"place": change.place, "old": change.old, "new": change.new, "cause": cause})
}
