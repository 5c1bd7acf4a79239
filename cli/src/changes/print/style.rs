//! Text for terminals, or Markdown for the comment of a pull request.

use std::fmt::Write as _;

use super::names::{Place, heading};
use super::values::code;

/// How changes are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Text,
    Markdown,
}

/// Changes with their jobs and targets.
pub(super) type Set<'a, T> = (&'a [Place], Vec<T>);

impl Style {
    /// Prints sets of changes below their headings, up to a maximum number over all sets.
    pub(super) fn print<T>(
        self,
        sets: &[Set<'_, T>],
        (max, noun): (usize, &str),
        mut set: impl FnMut(&mut String, &str, &[T], usize),
    ) -> String {
        let mut out = String::new();
        let mut left = max;
        for (places, changes) in sets {
            if left == 0 {
                break;
            }
            let heading = match self {
                Self::Text => heading(places),
                Self::Markdown => format!("\n**{}**", heading(places)),
            };
            set(&mut out, &heading, changes, left);
            left = left.saturating_sub(changes.len());
        }
        let all = sets.iter().map(|(_, changes)| changes.len()).sum();
        self.more(&mut out, "", (all, max), &format!(" {noun}"));
        out
    }

    /// How many more there are than are printed, if any.
    pub(super) fn more(self, out: &mut String, indent: &str, (all, shown): (usize, usize), noun: &str) {
        let Some(more) = all.checked_sub(shown).filter(|more| *more > 0) else { return };
        let _ = match self {
            Self::Text => writeln!(out, "{indent}and {more} more{noun}; `--format json` prints all"),
            Self::Markdown => writeln!(out, "\nand {more} more{noun}"),
        };
    }
}

/// The head of a table of values.
pub(super) fn table(out: &mut String, last: &str) {
    let _ = writeln!(out, "| field | old | new | {last} |\n|---|---|---|---|");
}

/// A row of it.
pub(super) fn row(
    out: &mut String,
    field: &str,
    values: (Option<String>, Option<String>),
    cause: Option<String>,
) {
    let cell = |text: Option<String>| text.map_or(String::new(), |text| code(&text));
    let cause = cause.unwrap_or_default().replace('|', "\\|");
    let _ = writeln!(out, "| {} | {} | {} | {cause} |", code(field), cell(values.0), cell(values.1));
}
