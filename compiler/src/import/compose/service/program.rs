//! The program of a service and its variables, some of which only its command line can set.

use crate::document::{Entry, Node, Value};
use crate::source::Span;

use super::super::super::container::{self, Role};
use super::super::super::nodes::{sequence, string};
use super::super::super::values::{pairs, scalar};
use super::super::super::words::{Piece, split_plain};
use super::Service;

impl Service<'_, '_, '_> {
    /// Writes `run` or `args`, and the variables whose names no shell accepts.
    pub(super) fn program(&mut self, entries: &[Entry]) {
        let command = self.command.take();
        let image = entries.iter().find(|entry| entry.key == "image").and_then(|entry| scalar(&entry.value));
        let is_known = self.entrypoint.is_some();
        let dotted = std::mem::take(&mut self.dotted);
        for (name, value, part) in &dotted {
            if is_known {
                self.role.draft.account.field(*part, format!("roles.{}.run", self.role.name));
            } else if image.as_ref().is_some_and(|image| image.contains("elasticsearch")) {
                elastic(&mut self.role, name, value, *part);
            } else {
                container::variable(&mut self.role, name, Some(value), *part);
            }
        }
        match (self.entrypoint.take(), command) {
            (Some((mut words, part)), command) => {
                if !dotted.is_empty() {
                    // Shells pass no such variables on; the program `env` does.
                    let set = dotted.iter().map(|(name, value, at)| string(*at, format!("{name}={value}")));
                    words.splice(0..0, std::iter::once(string(part, "env")).chain(set));
                }
                if let Some((more, at)) = command {
                    self.role.draft.account.field(at, format!("roles.{}.run", self.role.name));
                    words.extend(more);
                }
                self.role.field(&["run"], part, sequence(part, words));
            }
            (None, Some((words, part))) => self.role.field(&["args"], part, sequence(part, words)),
            (None, None) => {}
        }
    }

    /// The words of `command` or `entrypoint`; none for one that resets it to that of the image.
    pub(super) fn words(&mut self, key: &str, node: &Node, part: Span) -> Option<(Vec<Node>, Span)> {
        let words: Vec<Node> = if let Value::Sequence(items) = &node.value {
            let texts: Vec<(String, Span)> =
                items.iter().filter_map(|item| Some((scalar(item)?, item.span))).collect();
            texts.into_iter().map(|(text, at)| string(at, self.resolved(key, &text, at))).collect()
        } else {
            let text = scalar(node)?;
            let Ok(words) = split_plain(&text) else {
                self.role.draft.invalid(part, "the quote is not closed", "");
                return None;
            };
            let piece = |piece: Piece| match piece {
                Piece::Text(text) | Piece::Other(text) => text,
                Piece::Variable(name) => format!("${{{name}}}"),
            };
            let texts: Vec<String> =
                words.into_iter().map(|word| word.pieces.into_iter().map(piece).collect()).collect();
            texts.iter().map(|text| string(node.span, self.resolved(key, text, node.span))).collect()
        };
        if words.is_empty() {
            self.role.draft.note(part, "empty: the default of the image");
            return None;
        }
        Some((words, part))
    }

    pub(super) fn environment(&mut self, node: &Node, part: Span) {
        let pairs = pairs(node);
        if pairs.is_empty() {
            return self.role.draft.note(part, "empty: the default");
        }
        for (name, value, part) in pairs {
            let value = value.map(|value| self.resolved(&name, &value, part));
            if let (true, Some(value)) = (is_dotted(&name), &value) {
                self.dotted.push((name, value.clone(), part));
                continue;
            }
            container::variable(&mut self.role, &name, value.as_deref(), part);
        }
    }
}

/// Whether a name is one that programs of Java read, and no shell passes on.
fn is_dotted(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.contains(['.', '-'])
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_part)
}

/// A setting of Elasticsearch, under the name that its image reads too.
fn elastic(role: &mut Role<'_, '_>, name: &str, value: &str, part: Span) {
    let name = name.replace('_', "__").replace('.', "_").to_ascii_uppercase();
    let name = format!("ES_SETTING_{name}");
    container::variable(role, &name, Some(value), part);
    role.draft.changed(
        part,
        format!("the setting becomes `{name}`: a job has no variables with `.` in their names"),
        "images of Elasticsearch 7.16 and later read it",
    );
}
