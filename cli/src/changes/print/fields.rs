//! What changed in the fields of jobs.

use std::fmt::Write as _;

use crate::changes::summary::FieldChange;

use super::names::{Place, field, heading};
use super::values::{cells, code, values};

/// Maximum number of fields that are printed.
const MAX_FIELDS: usize = 60;
/// Maximum number of lines of job files that are printed for a field.
const MAX_CAUSES: usize = 3;

/// The changes by their jobs and targets, in the order of the first ones.
fn sets(changes: &[FieldChange]) -> Vec<(&[Place], Vec<&FieldChange>)> {
    let mut sets: Vec<(&[Place], Vec<&FieldChange>)> = vec![];
    for change in changes {
        match sets.iter_mut().find(|(places, _)| *places == change.jobs) {
            Some((_, same)) => same.push(change),
            None => sets.push((&change.jobs, vec![change])),
        }
    }
    // The totals of each job, where the job's own fields are printed together with those of others.
    sets.retain(|(_, changes)| !changes.iter().all(|change| change.is_total()));
    sets
}

/// The changes for people.
pub(super) fn text(changes: &[FieldChange]) -> String {
    let mut out = String::new();
    let mut left = MAX_FIELDS;
    let sets = sets(changes);
    for (places, changes) in &sets {
        if left == 0 {
            break;
        }
        match changes.as_slice() {
            [change] if is_whole(change) => {
                let _ = writeln!(out, "{}: {}", heading(places), whole(change));
            }
            _ => {
                let _ = writeln!(out, "{}", heading(places));
                for change in changes.iter().take(left) {
                    let what = if is_role(change) {
                        whole(change).to_owned()
                    } else {
                        values(change.old.as_ref(), change.new.as_ref())
                    };
                    let causes = causes(change).map_or(String::new(), |causes| format!(" ({causes})"));
                    let _ = writeln!(out, "  {}: {what}{causes}", field(&change.field, &change.roles));
                }
            }
        }
        left = left.saturating_sub(changes.len());
    }
    let all: usize = sets.iter().map(|(_, changes)| changes.len()).sum();
    if all > MAX_FIELDS {
        let _ = writeln!(out, "and {} more fields; `--format json` prints all", all - MAX_FIELDS);
    }
    out
}

/// The changes as tables of Markdown.
pub(super) fn markdown(changes: &[FieldChange]) -> String {
    let mut out = String::new();
    let mut left = MAX_FIELDS;
    let sets = sets(changes);
    for (places, changes) in &sets {
        if left == 0 {
            break;
        }
        match changes.as_slice() {
            [change] if is_whole(change) => {
                let _ = writeln!(out, "\n**{}**: {}", heading(places), whole(change));
            }
            _ => {
                let _ = writeln!(out, "\n**{}**\n", heading(places));
                out += "| field | old | new | line |\n|---|---|---|---|\n";
                for change in changes.iter().take(left) {
                    let (old, new) = if is_role(change) {
                        (
                            change.old.as_ref().map(|_| "role".to_owned()),
                            change.new.as_ref().map(|_| "role".to_owned()),
                        )
                    } else {
                        cells(change.old.as_ref(), change.new.as_ref())
                    };
                    let cell = |text: Option<String>| text.map_or(String::new(), |text| code(&text));
                    let causes = causes(change).unwrap_or_default().replace('|', "\\|");
                    let field = code(&field(&change.field, &change.roles));
                    let _ = writeln!(out, "| {field} | {} | {} | {causes} |", cell(old), cell(new));
                }
            }
        }
        left = left.saturating_sub(changes.len());
    }
    let all: usize = sets.iter().map(|(_, changes)| changes.len()).sum();
    if all > MAX_FIELDS {
        let _ = writeln!(out, "\nand {} more fields", all - MAX_FIELDS);
    }
    out
}

/// Whether a whole job is new or gone.
fn is_whole(change: &FieldChange) -> bool {
    change.field.is_empty() && change.roles.is_empty()
}

/// Whether whole roles are new or gone.
fn is_role(change: &FieldChange) -> bool {
    change.field.is_empty() && !change.roles.is_empty()
}

fn whole(change: &FieldChange) -> &'static str {
    if change.new.is_some() { "new" } else { "gone" }
}

fn causes(change: &FieldChange) -> Option<String> {
    let lines: Vec<String> = change.causes.iter().map(|(file, line)| format!("{file}:{line}")).collect();
    let more = lines.len().checked_sub(MAX_CAUSES).filter(|more| *more > 0);
    match (lines.as_slice(), more) {
        ([], _) => None,
        (lines, None) => Some(lines.join(", ")),
        (lines, Some(more)) => Some(format!("{}, and {more} more", lines[..MAX_CAUSES].join(", "))),
    }
}
