//! What changed in the fields of jobs.

use std::fmt::Write as _;

use crate::changes::summary::FieldChange;

use super::names::field;
use super::style::{Set, Style, row, table};
use super::values::{cells, values};

/// Maximum number of fields that are printed.
const MAX_FIELDS: usize = 60;
/// Maximum number of lines of job files that are printed for a field.
const MAX_CAUSES: usize = 3;

/// The changes by their jobs and targets, in the order of the first ones.
fn sets(changes: &[FieldChange]) -> Vec<Set<'_, &FieldChange>> {
    let mut sets: Vec<Set<'_, &FieldChange>> = vec![];
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

/// The changes; in Markdown, as tables.
pub(super) fn print(changes: &[FieldChange], style: Style) -> String {
    style.print(&sets(changes), (MAX_FIELDS, "fields"), |out, heading, changes, left| {
        if let [change] = changes
            && is_whole(change)
        {
            let _ = writeln!(out, "{heading}: {}", whole(change));
            return;
        }
        let _ = writeln!(out, "{heading}");
        if style == Style::Markdown {
            out.push('\n');
            table(out, "line");
        }
        for change in changes.iter().take(left) {
            let (old, new) = (change.old.as_ref(), change.new.as_ref());
            let (field, causes) = (field(&change.field, &change.roles), causes(change));
            match style {
                Style::Text => {
                    let what = if is_role(change) { whole(change).to_owned() } else { values(old, new) };
                    let causes = causes.map_or(String::new(), |causes| format!(" ({causes})"));
                    let _ = writeln!(out, "  {field}: {what}{causes}");
                }
                Style::Markdown => {
                    let role = |_| "role".to_owned();
                    let cells =
                        if is_role(change) { (old.map(role), new.map(role)) } else { cells(old, new) };
                    row(out, &field, cells, causes);
                }
            }
        }
    })
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
