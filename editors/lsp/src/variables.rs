//! Variables whose names contain a name of the job: a script uses `$JOBC_HOSTS_TRAIN` for the role `train`.

use std::ops::Range;

use jobc_compiler::document::{Document, Node};

use crate::names::{Kind, Mention, Name};

/// A variable that is renamed with a name of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariableRename {
    pub(crate) old: String,
    pub(crate) new: String,
    /// The places of the old name.
    pub(crate) places: Vec<Range<usize>>,
}

/// The variables that a file uses and that change when a name is renamed.
pub(crate) fn renamed(
    name: &Name,
    new: &str,
    mentions: &[Mention],
    document: &Document,
    text: &str,
) -> Vec<VariableRename> {
    let whole = 0..text.len();
    let mut found: Vec<(String, String, Range<usize>)> = vec![];
    match name.kind {
        Kind::Role => {
            let hosts = |role: &str| format!("JOBC_HOSTS_{}", upper(role));
            found.push((hosts(&name.text), hosts(new), whole.clone()));
            let ports = mentions.iter().filter(|it| it.declares && it.name.kind == Kind::Port);
            for port in ports.filter(|port| port.name.owner == name.text) {
                let endpoints = |role: &str| endpoints(role, &port.name.text);
                found.push((endpoints(&name.text), endpoints(new), whole.clone()));
            }
        }
        Kind::Port => {
            let port = |label: &str| format!("JOBC_PORT_{}", upper(label));
            let roles = document.root.get("roles").map(Node::entries).unwrap_or_default();
            let role = roles.iter().find(|role| role.key == name.owner);
            // Each role has its own ports.
            let own = role.map_or(0..0, |role| role.key_span.range().start..role.value.span.range().end);
            found.push((port(&name.text), port(new), own));
            found.push((endpoints(&name.owner, &name.text), endpoints(&name.owner, new), whole));
        }
        _ => {}
    }
    let places = |old: &str, within: Range<usize>| -> Vec<Range<usize>> {
        let part = text.get(within.clone()).unwrap_or_default();
        part.match_indices(old)
            .map(|(at, _)| within.start + at..within.start + at + old.len())
            .filter(|place| is_word(text, place))
            .collect()
    };
    let all =
        found.into_iter().map(|(old, new, within)| VariableRename { places: places(&old, within), old, new });
    all.filter(|it| !it.places.is_empty() && it.old != it.new).collect()
}

fn endpoints(role: &str, label: &str) -> String {
    format!("JOBC_ENDPOINTS_{}_{}", upper(role), upper(label))
}

fn upper(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

/// Whether a name begins and ends there.
fn is_word(text: &str, place: &Range<usize>) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text[..place.start].ends_with(letter) && !text[place.end..].starts_with(letter)
}
