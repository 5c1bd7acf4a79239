//! Settings of a target that pods ask for: one for all pods where they agree, else one for each role.

use crate::document::Node;
use crate::source::Span;

use super::super::draft::Draft;
use super::super::nodes::sequence;

/// A setting of a role or of the job, with all the places that ask for it.
type Joined = (Option<String>, Vec<String>, Vec<Span>, Node);

/// The settings below `kubernetes` of a target.
#[derive(Debug, Default)]
pub(super) struct Settings {
    all: Vec<(Option<String>, Vec<String>, Span, Node)>,
}

impl Settings {
    /// A setting of the job.
    pub(super) fn job(&mut self, path: &[&str], part: Span, value: Node) {
        self.all.push((None, owned(path), part, value));
    }

    /// A setting of the pods of a role.
    pub(super) fn role(&mut self, role: &str, path: &[&str], part: Span, value: Node) {
        self.all.push((Some(role.to_owned()), owned(path), part, value));
    }

    /// An item of a list of the pods of a role.
    pub(super) fn role_item(&mut self, role: &str, path: &str, part: Span, value: Node) {
        self.role(role, &[path], part, sequence(part, vec![value]));
    }

    /// Writes them, for the roles of the job.
    pub(super) fn finish(self, roles: &[&str], draft: &mut Draft<'_>) {
        // Lists are joined first, so that they are compared as a whole.
        let mut joined: Vec<Joined> = Vec::new();
        for (role, path, part, value) in self.all {
            let same = joined.iter_mut().find(|(of, at, ..)| *of == role && *at == path);
            match (same, &value.value) {
                (Some((.., parts, known)), crate::document::Value::Sequence(more)) => {
                    parts.push(part);
                    let items = known.items().iter().chain(more).cloned().collect();
                    *known = sequence(known.span, items);
                }
                (Some((.., parts, known)), _) if known.to_json() == value.to_json() => parts.push(part),
                _ => joined.push((role, path, vec![part], value)),
            }
        }
        for (role, path, parts, value) in &joined {
            let json = value.to_json();
            let agree = roles.iter().all(|name| {
                joined.iter().any(|(of, at, _, other)| {
                    of.as_deref() == Some(name) && at == path && other.to_json() == json
                })
            });
            let mut to: Vec<&str> = vec!["kubernetes"];
            if let Some(role) = role.as_deref().filter(|_| !agree) {
                to.extend(["roles", role]);
            }
            to.extend(path.iter().map(String::as_str));
            for part in parts {
                draft.target(&to, *part, value.clone());
            }
        }
    }
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|key| (*key).to_owned()).collect()
}
