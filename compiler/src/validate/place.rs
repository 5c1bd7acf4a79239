//! Describes places: `in role \`train\``, `under \`resources.gpu\``.

use jobc_schema::Pointer;

use crate::document::{Document, Node};

use super::schema::ANY;

/// The segments of a pointer.
pub(super) fn segments(at: &Pointer) -> Vec<String> {
    at.segments().collect()
}

/// The name of a value in a sentence: its key, or its position in a list.
pub(super) fn subject(segments: &[String]) -> String {
    match segments {
        [] => "the file".to_owned(),
        [.., list, index] if is_index(index) => match index.parse::<usize>() {
            Ok(n) => format!("item {} of `{list}`", n + 1),
            Err(_) => format!("`{index}`"),
        },
        [.., key] => format!("`{key}`"),
    }
}

/// Describes a map, as the end of a sentence: ` in role \`train\`` and similar; empty for the root.
pub(super) fn within(segments: &[String]) -> String {
    match segments {
        [] => " at the top level".to_owned(),
        [roles, role] if roles == "roles" => format!(" in role `{role}`"),
        [roles, role, rest @ ..] if roles == "roles" => format!(" in `{}` of role `{role}`", dotted(rest)),
        [targets, target] if targets == "targets" => format!(" in target `{target}`"),
        [targets, target, rest @ ..] if targets == "targets" => {
            format!(" in `{}` of target `{target}`", dotted(rest))
        }
        _ => format!(" in `{}`", dotted(segments)),
    }
}

/// `resources.gpu`, `copy[0]`.
pub(super) fn dotted(segments: &[String]) -> String {
    let mut text = String::new();
    for segment in segments {
        if is_index(segment) {
            text = format!("{text}[{segment}]");
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(segment);
        }
    }
    text
}

/// Whether a segment is a list index; no name of ours consists only of digits.
pub(super) fn is_index(segment: &str) -> bool {
    !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit())
}

/// The way from one map to another, as steps up and steps down.
pub(super) struct RelativePath {
    /// Steps up from the map that contains the key.
    pub(super) up: usize,
    /// Steps down from there.
    pub(super) down: usize,
    /// The other map, with names filled in if they are known.
    target: Vec<String>,
}

impl RelativePath {
    /// The way from `place` to the level `path`, in which [`super::schema::ANY`] steps take the place's own names
    /// as long as both paths agree.
    pub(super) fn between(place: &[String], path: &[String]) -> Self {
        let common = place.iter().zip(path).take_while(|(s, known)| s == known || *known == ANY).count();
        let target = place[..common].iter().chain(&path[common..]).cloned().collect();
        Self { up: place.len() - common, down: path.len() - common, target }
    }

    /// The length of the way; up is shorter than down, since keys are more often nested too deep, and from the
    /// root the roles are nearest, since they contain most keys that are not indented.
    pub(super) fn length(&self) -> usize {
        let below = &self.target[self.target.len() - self.down..];
        let down: usize = below.iter().map(|step| if step == ANY { 1 } else { 2 }).sum();
        let from_top = self.up == 0 && below.first().is_some_and(|step| step == "roles");
        self.up + down - if from_top { 2 } else { 0 }
    }

    /// The path of a key there; `None` if the way goes through one of several names.
    pub(super) fn pointer(&self, key: &str, document: &Document) -> Option<Pointer> {
        let mut node: Option<&Node> = Some(&document.root);
        let mut pointer = Pointer::ROOT;
        let mut above = "";
        for segment in &self.target {
            let name = match (segment == ANY, node.map(Node::entries)) {
                (false, _) => segment.as_str(),
                (true, Some([only])) => &only.key,
                (true, None | Some([])) if above == "roles" => "main",
                (true, _) => return None,
            };
            node = node.and_then(|node| node.get(name));
            pointer = pointer.key(name);
            above = segment;
        }
        (node.and_then(|node| node.get(key)).is_none()).then(|| pointer.key(key))
    }

    /// `under \`resources\``, `in role \`train\`, beside \`resources\``.
    pub(super) fn words(&self, place: &[String], document: &Document) -> String {
        let common = place.len() - self.up;
        let target = fill_in(&self.target, document);
        if self.down == 0 {
            let beside = dotted(&place[common..=common]);
            return match &target[..] {
                [] => format!("at the top level, next to `{beside}`"),
                [roles, role] if roles == "roles" => format!("in role `{role}`, next to `{beside}`"),
                _ => format!("beside `{beside}`"),
            };
        }
        let from = if self.up == 0 { common } else { 0 };
        format!("under `{}`", dotted(&target[from..]))
    }
}

/// Replaces steps that match any name with a name: the only one there is, or `<role>`.
fn fill_in(path: &[String], document: &Document) -> Vec<String> {
    let mut node: Option<&Node> = Some(&document.root);
    let mut filled: Vec<String> = vec![];
    for segment in path {
        let name = if segment == ANY {
            match node.map(Node::entries) {
                Some([only]) => only.key.clone(),
                _ => format!("<{}>", singular(filled.last().map_or("", String::as_str))),
            }
        } else {
            segment.clone()
        };
        node = node.and_then(|node| node.get(&name));
        filled.push(name);
    }
    filled
}

fn singular(map: &str) -> &str {
    match map {
        "roles" => "role",
        "targets" => "target",
        "ports" => "label",
        "images" => "image",
        "secrets" => "secret",
        _ => "name",
    }
}

/// Joins words as alternatives: `a, b or c`.
pub(super) fn either(words: &[String]) -> String {
    match words {
        [] => "something else".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
