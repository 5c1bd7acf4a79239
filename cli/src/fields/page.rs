//! The page of a field, for `jobc explain`.

use std::fmt::Write as _;

use super::format::{Field, is_placeholder};
use super::kind::{Naming, limits, words};

impl<'a> Field {
    /// Its type and limits: `Type: integer or expression; required; at least 0.`
    pub(super) fn facts(&self, naming: &mut Naming<'a, '_>) -> String {
        let kind = words(self.format, self.rules, naming);
        let facts = std::iter::once(format!("Type: {kind}")).chain(limits(self.rules, self.is_required));
        format!("{}.", facts.collect::<Vec<_>>().join("; "))
    }
}

/// What a field means, how it is written, an example, and the fields below it; as Markdown.
pub(crate) fn page(field: &Field) -> String {
    let mut page = format!("# `{}` of the {}\n\n", field.name(), field.format.title);
    page += &format!("{}\n\n{}\n", field.facts(&mut Naming::Plain), field.text());
    let below = below(field);
    if !below.is_empty() {
        page += "\nFields:\n\n";
    }
    for (name, inner) in below {
        let required = if inner.is_required { " (required)" } else { "" };
        let _ = writeln!(page, "* `{name}`{required}: {}", inner.summary());
    }
    page
}

/// The fields one level below, by their names; of a map with names that the user chooses, those of its values.
pub(crate) fn below(field: &Field) -> Vec<(String, &'static Field)> {
    let inside = |other: &&'static Field| {
        let rest = other.path.strip_prefix(&field.path[..]);
        rest.is_some_and(|rest| match rest {
            [key] => !is_placeholder(key),
            [first, key] => is_placeholder(first) && !is_placeholder(key),
            _ => false,
        })
    };
    let fields = field.format.fields().iter().filter(inside);
    fields.map(|other| (other.path[field.path.len()..].join("."), other)).collect()
}
