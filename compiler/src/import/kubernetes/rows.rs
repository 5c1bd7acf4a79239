//! Rows: a field of a manifest, and what it becomes. For the reader, and for the table in the documentation.

use crate::document::{Entry, Node, Value};
use crate::suggest;

use super::super::draft::Draft;
use super::facts::Fact;

/// A field.
#[derive(Debug)]
pub(super) struct Row {
    /// Its path below the map that the table is about: `runPolicy.backoffLimit`, `ports[].name`.
    pub(super) path: &'static str,
    /// What it becomes.
    pub(super) to: To,
}

/// What a field becomes.
#[derive(Clone, Copy, Debug)]
pub(super) enum To {
    /// A fact about the job or a group of pods, which the layout needs together with others.
    Fact(Fact),
    /// A field that the reader of its map computes; in words for the documentation.
    Field(&'static str),
    /// A setting of a target.
    Setting(&'static str),
    /// Nothing; why.
    Note(&'static str),
    /// A warning: what differs, and what to write instead.
    Changed(&'static str, &'static str),
    /// An error: why, and what to write instead.
    Refusal(&'static str, &'static str),
}

/// A field that gives a fact.
pub(super) const fn fact(path: &'static str, fact: Fact) -> Row {
    Row { path, to: To::Fact(fact) }
}

/// A field that its reader converts; in words for the documentation.
pub(super) const fn field(path: &'static str, words: &'static str) -> Row {
    Row { path, to: To::Field(words) }
}

/// A setting of a target.
pub(super) const fn setting(path: &'static str, to: &'static str) -> Row {
    Row { path, to: To::Setting(to) }
}

/// A field that is not needed.
pub(super) const fn note(path: &'static str, why: &'static str) -> Row {
    Row { path, to: To::Note(why) }
}

/// A field that means something else in a job.
pub(super) const fn changed(path: &'static str, what: &'static str, instead: &'static str) -> Row {
    Row { path, to: To::Changed(what, instead) }
}

/// A field without a counterpart.
pub(super) const fn refused(path: &'static str, what: &'static str, instead: &'static str) -> Row {
    Row { path, to: To::Refusal(what, instead) }
}

impl Row {
    /// What it becomes, in words.
    pub(super) fn words(&self) -> String {
        match self.to {
            To::Fact(fact) => fact.words().to_owned(),
            To::Field(words) => words.to_owned(),
            To::Setting(path) => format!("`{path}` of a target"),
            To::Note(why) => format!("nothing: {why}"),
            To::Changed(what, instead) => format!("a warning: {what}; {instead}"),
            To::Refusal(what, instead) => format!("an error: {what}; {instead}"),
        }
    }
}

/// Rows below a path.
pub(super) type Table = (&'static str, &'static [Row]);

/// The fields of a map that is being read.
pub(super) struct Fields<'t> {
    /// What the map is, in words.
    pub(super) of: &'t str,
    /// Its fields.
    pub(super) tables: &'t [Table],
    /// Paths that another reader reads.
    pub(super) elsewhere: &'t [&'t str],
}

impl Fields<'_> {
    /// Reads a map: what needs no reader is accounted for here, and `take` gets the rest.
    pub(super) fn read(
        &self,
        node: &Node,
        draft: &mut Draft<'_>,
        take: &mut dyn FnMut(&mut Draft<'_>, &'static Row, &Entry),
    ) {
        self.level(node, "", draft, take);
    }

    fn level(
        &self,
        node: &Node,
        path: &str,
        draft: &mut Draft<'_>,
        take: &mut dyn FnMut(&mut Draft<'_>, &'static Row, &Entry),
    ) {
        for entry in node.entries() {
            let at = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            let part = entry.key_span;
            if self.elsewhere.contains(&at.as_str()) {
                continue;
            }
            if entry.value.value == Value::Null {
                draft.note(part, "empty: the default");
                continue;
            }
            if let Some(row) = self.row(&at) {
                match row.to {
                    To::Note(why) => draft.note(part, why),
                    To::Refusal(what, instead) => draft.refuse(part, what, instead),
                    To::Changed(what, instead) => draft.changed(part, what, instead),
                    To::Setting(to) => {
                        let to: Vec<&str> = to.split('.').collect();
                        draft.target(&to, part, entry.value.clone());
                    }
                    _ => take(draft, row, entry),
                }
            } else if self.leads_to(&at) {
                self.below(&entry.value, &at, part, draft, take);
            } else {
                let near = suggest::nearest(&entry.key, self.names(path));
                draft.unknown(part, format!("unknown field `{}` of {}", entry.key, self.of), near);
            }
        }
    }

    /// Reads what is below a field that has no row itself.
    fn below(
        &self,
        value: &Node,
        at: &str,
        part: crate::source::Span,
        draft: &mut Draft<'_>,
        take: &mut dyn FnMut(&mut Draft<'_>, &'static Row, &Entry),
    ) {
        match &value.value {
            Value::Mapping(entries) if entries.is_empty() => draft.note(part, "empty: the default"),
            Value::Sequence(items) if items.is_empty() => draft.note(part, "empty: the default"),
            Value::Mapping(_) => self.level(value, at, draft, take),
            Value::Sequence(items) => {
                for item in items {
                    self.level(item, &format!("{at}[]"), draft, take);
                }
            }
            _ => draft.invalid(part, format!("`{at}` of {} is not a map or a list", self.of), ""),
        }
    }

    fn row(&self, at: &str) -> Option<&'static Row> {
        self.tables.iter().find_map(|(prefix, rows)| {
            let rest = below(at, prefix)?;
            rows.iter().find(|row| row.path == rest)
        })
    }

    /// Whether a path is on the way to one of the rows, or to what another reader reads.
    fn leads_to(&self, at: &str) -> bool {
        let is_before = |path: &str| {
            path.strip_prefix(at).is_some_and(|rest| rest.starts_with('.') || rest.starts_with("[]"))
        };
        self.paths().any(|path| is_before(&path)) || self.elsewhere.iter().any(|path| is_before(path))
    }

    /// The names of the fields right below a path.
    fn names(&self, path: &str) -> Vec<&'static str> {
        let name = |row: &'static Row, prefix: &str| -> Option<&'static str> {
            let rest = match below(path, prefix) {
                Some("") => row.path,
                Some(inner) => row.path.strip_prefix(inner)?.strip_prefix('.')?,
                None => return None,
            };
            rest.split(['.', '[']).next()
        };
        self.tables
            .iter()
            .flat_map(|(prefix, rows)| rows.iter().filter_map(|row| name(row, prefix)))
            .collect()
    }

    fn paths(&self) -> impl Iterator<Item = String> {
        self.tables.iter().flat_map(|(prefix, rows)| {
            rows.iter().map(move |row| {
                if prefix.is_empty() { row.path.to_owned() } else { format!("{prefix}.{}", row.path) }
            })
        })
    }
}

/// The part of a path below a prefix.
fn below<'p>(at: &'p str, prefix: &str) -> Option<&'p str> {
    if prefix.is_empty() {
        return Some(at);
    }
    let rest = at.strip_prefix(prefix)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}
