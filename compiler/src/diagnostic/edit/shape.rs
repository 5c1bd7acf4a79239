//! Edits of whole entries that keep their text: an entry that moves to another map, that becomes a comment, whose
//! content moves up, and a list whose items become entries.

use jobc_schema::Pointer;
use serde_json::Value as Json;

use crate::document::{Document, Node, Value};
use crate::source::{Sources, Span};

use super::{flow, is_json, name};

/// How an entry is restructured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Its lines become comments.
    Comment,
    /// The entries of its map take its place.
    Unwrapped,
    /// The items of its list become entries with these names, without the key that had the name.
    ByName {
        /// One for each item.
        names: Vec<String>,
        /// The key of the items that is left out.
        key: Option<String>,
    },
}

/// The bytes and the text that put an entry's text, with its comments, at the end of the map at another path. Maps that
/// are not there are written around it.
pub(in super::super) fn moved(
    document: &Document,
    sources: &Sources,
    from: &Pointer,
    to: &Pointer,
    value: Option<&Json>,
) -> Option<(Span, String)> {
    let root = &document.root;
    let moving = Moving::new(document, sources, from)?;
    let segments: Vec<String> = to.segments().collect();
    let (mut target, mut depth) = (root, 0);
    while let Some(next) = segments.get(depth).and_then(|segment| target.get(segment)) {
        (target, depth) = (next, depth + 1);
    }
    let Value::Mapping(entries) = &target.value else { return None };
    let [between @ .., key] = &segments[depth..] else { return None };
    let text = sources.get(root.span.source).text();
    let at = |start: usize, end: usize| Span::new(root.span.source, start, end);
    let json = is_json(root, sources);
    let in_braces = text.as_bytes().get(target.span.start as usize) == Some(&b'{');
    if in_braces || json {
        let value = value.cloned().unwrap_or_else(|| moving.node.to_json());
        let map = |value: Json, key: &String| Json::Object([(key.clone(), value)].into_iter().collect());
        let value = between.iter().chain([key]).rev().fold(value, map);
        let Json::Object(entry) = &value else { return None };
        let entry: Vec<String> =
            entry.iter().map(|(key, value)| format!("{}: {}", name(key, json), flow(value, json))).collect();
        let comma = if entries.is_empty() { "" } else { ", " };
        let start = target.span.start as usize + 1;
        return in_braces.then(|| (at(start, start), format!("{}{comma}", entry.join(", "))));
    }
    let first = entries.first()?;
    let indent = column(text, first.key_span.start as usize);
    let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines = String::new();
    let mut depth = indent;
    for map in between {
        lines.push_str(&format!("{}{}:{line_break}", " ".repeat(depth), name(map, false)));
        depth += 2;
    }
    let entry = match value {
        Some(value) => format!("{}: {}", name(key, false), flow(value, false)),
        None => moving.text(key, depth)?,
    };
    lines.push_str(&format!("{}{entry}{line_break}", " ".repeat(depth)));
    // If the entry is the last of the map, the new text comes after its lines.
    let last = entries.last()?;
    let end = end_of_lines(text, last.value.span.end.max(last.key_span.end) as usize);
    if !text[..end].ends_with('\n') {
        lines = format!("{line_break}{}", lines.trim_end());
    }
    Some((at(end, end), lines))
}

/// An entry that moves.
struct Moving<'a> {
    node: &'a Node,
    text: &'a str,
    /// Where its key ends.
    key_end: usize,
    /// Where its last line ends.
    end: usize,
    indent: usize,
}

impl<'a> Moving<'a> {
    fn new(document: &'a Document, sources: &'a Sources, from: &Pointer) -> Option<Self> {
        let entry = entry_at(document, from)?;
        let text = sources.get(document.root.span.source).text();
        let (start, end) = bounds(document, entry)?;
        let is_block = !in_braces(text, document.at(&from.parent()?)?);
        let end = if is_block { end_of_lines(text, end) } else { end };
        Some(Self {
            node: &entry.value,
            text: &text[..end],
            key_end: entry.key_span.end as usize,
            end,
            indent: column(text, start),
        })
    }

    /// The entry under a key, its further lines as far to the right as they were.
    fn text(&self, key: &str, indent: usize) -> Option<String> {
        let rest = self.text.get(self.key_end..self.end)?.trim_end();
        Some(format!("{}{}", name(key, false), indented(rest, self.indent, indent)))
    }
}

/// The bytes and the text that restructure an entry; `None` if the file writes it in braces.
pub(in super::super) fn reshaped(
    document: &Document,
    sources: &Sources,
    pointer: &Pointer,
    shape: &Shape,
) -> Option<(Span, String)> {
    let entry = entry_at(document, pointer)?;
    let text = sources.get(document.root.span.source).text();
    let (start, end) = bounds(document, entry)?;
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let indent = column(text, start);
    let at = |start: usize, end: usize| Span::new(document.root.span.source, start, end);
    let in_lines = text[line..start].trim().is_empty() && !is_json(&document.root, sources);
    match shape {
        Shape::Comment => {
            let end = end_of_lines(text, end);
            let above = document.at(&pointer.parent()?)?;
            let own_line = in_lines && !in_braces(text, above) && above.entries().len() > 1;
            let comment = |line: &str| {
                let blank = line.trim().is_empty();
                if blank { line.to_owned() } else { format!("{}# {}", " ".repeat(indent), cut(line, indent)) }
            };
            own_line.then(|| {
                let lines: String = text[line..end].split_inclusive('\n').map(comment).collect();
                (at(line, end), lines)
            })
        }
        Shape::Unwrapped => {
            let Value::Mapping(inner) = &entry.value.value else { return None };
            if in_braces(text, &entry.value) {
                let raw = sources.slice(entry.value.span);
                let content = raw.strip_prefix('{')?.strip_suffix('}')?.trim();
                let block = in_lines && !in_braces(text, document.at(&pointer.parent()?)?);
                // In braces the entries stay on one line; outside of them each needs its own.
                let plain = inner
                    .iter()
                    .all(|entry| matches!(entry.value.value, Value::Number { .. } | Value::String(_)));
                if content.is_empty() || (block && !plain) {
                    return None;
                }
                let lines: Vec<String> = inner
                    .iter()
                    .map(|entry| {
                        sources.slice(Span { end: entry.value.span.end, ..entry.key_span }).to_owned()
                    })
                    .collect();
                let content =
                    if block { lines.join(&format!("\n{}", " ".repeat(indent))) } else { content.to_owned() };
                return Some((at(start, end), content));
            }
            // With the comments above the first entry.
            let first = inner.first()?.key_span.start as usize;
            let body = text.get(end_of_lines(text, entry.key_span.end as usize)..end)?.trim_end();
            let from = column(text, first);
            in_lines.then(|| (at(start, end), indented(cut(body, from), from, indent)))
        }
        Shape::ByName { names, key } => by_name(document, sources, pointer, (names, key.as_deref())),
    }
}

/// A list of maps as a map of them.
fn by_name(
    document: &Document,
    sources: &Sources,
    pointer: &Pointer,
    (names, key): (&[String], Option<&str>),
) -> Option<(Span, String)> {
    let entry = entry_at(document, pointer)?;
    let Value::Sequence(items) = &entry.value.value else { return None };
    let text = sources.get(document.root.span.source).text();
    let json = is_json(&document.root, sources);
    let span = entry.value.span;
    if json || text.as_bytes().get(span.start as usize) == Some(&b'[') {
        let mut map = serde_json::Map::new();
        for (name, item) in names.iter().zip(items) {
            let mut value = item.to_json();
            if let (Some(value), Some(key)) = (value.as_object_mut(), key) {
                value.shift_remove(key);
            }
            map.insert(name.clone(), value);
        }
        return Some((span, flow(&Json::Object(map), json)));
    }
    let indent = column(text, entry.key_span.start as usize) + 2;
    let mut lines = String::new();
    for (position, item) in names.iter().zip(items).enumerate() {
        let (item_name, item) = item;
        let inner = item.entries();
        let first = inner.first()?.key_span.start as usize;
        if in_braces(text, item) {
            return None;
        }
        let end = items.get(position + 1).map_or(entry.value.span.end as usize, |next| {
            text[..next.span.start as usize].rfind('-').unwrap_or(next.span.start as usize)
        });
        let mut body = text.get(first..end)?.trim_end().to_owned();
        if let Some(left_out) = key.and_then(|key| inner.iter().find(|entry| entry.key == key)) {
            let from = left_out.key_span.start as usize - first;
            let to = end_of_lines(text, left_out.value.span.end as usize) - first;
            let to = to.min(body.len());
            // The next entry begins where this one did.
            let next = body[to..].len() - body[to..].trim_start_matches(' ').len();
            body.replace_range(from..(to + next).min(body.len()), "");
            body.truncate(body.trim_end().len());
        }
        let body = indented(&body, column(text, first), indent + 2);
        lines.push_str(&format!("\n{}{}:", " ".repeat(indent), name(item_name, false)));
        if body.is_empty() {
            lines.push_str(" {}");
        } else {
            lines.push_str(&format!("\n{}{body}", " ".repeat(indent + 2)));
        }
    }
    let end = span.start as usize + text.get(span.range())?.trim_end().len();
    Some((Span::new(span.source, entry.key_span.end as usize, end), format!(":{lines}")))
}

/// The entry at a path of the job file itself, not of what an alias brings there.
fn entry_at<'a>(document: &'a Document, pointer: &Pointer) -> Option<&'a crate::document::Entry> {
    let key = pointer.last()?;
    document.at(&pointer.parent()?)?.entries().iter().find(|entry| entry.key == key)
}

/// Where an entry begins and ends; nothing where a part of it is elsewhere.
fn bounds(document: &Document, entry: &crate::document::Entry) -> Option<(usize, usize)> {
    let (key, value) = (entry.key_span, entry.value.span);
    let here = key.source == document.root.span.source && value.source == key.source && value.end >= key.end;
    let empty = matches!(entry.value.value, Value::Null);
    let follows = value.start >= key.end || empty;
    (here && follows).then(|| (key.start as usize, value.end.max(key.end) as usize))
}

fn in_braces(text: &str, node: &Node) -> bool {
    text.as_bytes().get(node.span.start as usize).is_some_and(|byte| matches!(byte, b'{' | b'['))
}

/// The column of a byte.
fn column(text: &str, at: usize) -> usize {
    let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
    text[line..at].chars().count()
}

/// The end of the line that a byte is in; that byte itself where it begins a line.
fn end_of_lines(text: &str, at: usize) -> usize {
    if text[..at].ends_with('\n') {
        return at;
    }
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

/// A line without up to this many leading blanks.
fn cut(line: &str, blanks: usize) -> &str {
    let there = line.len() - line.trim_start_matches(' ').len();
    &line[there.min(blanks)..]
}

/// A text whose lines after the first are reindented.
fn indented(text: &str, from: usize, to: usize) -> String {
    let mut lines = text.split_inclusive('\n');
    let mut out = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        if !line.trim().is_empty() {
            out.push_str(&" ".repeat(to));
        }
        out.push_str(if line.trim().is_empty() { line.trim_start_matches(' ') } else { cut(line, from) });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::removal;
    use super::*;
    use crate::diagnostic::Sink;
    use crate::parse::parse;
    use crate::source::Source;

    fn document(text: &str) -> (Sources, Document) {
        let mut sources = Sources::new();
        let id = sources.add(Source::new(if text.starts_with('{') { "job.json" } else { "job.yaml" }, text));
        let document = parse(&sources, id, &mut Sink::new()).unwrap();
        (sources, document)
    }

    fn path(path: &str) -> Pointer {
        Pointer::ROOT.keys(path.split('.'))
    }

    /// A text after an entry has moved, or `-`.
    fn move_it(text: &str, from: &str, to: &str) -> String {
        let (sources, document) = document(text);
        let (from, to) = (path(from), path(to));
        let edits = (removal(&document, &sources, &from), moved(&document, &sources, &from, &to, None));
        let (Some(left), Some((span, new))) = edits else { return "-".to_owned() };
        let mut edits = [(left, String::new()), (span, new)];
        edits.sort_by_key(|(span, _)| std::cmp::Reverse((span.start, span.end)));
        let mut text = text.to_owned();
        for (span, new) in edits {
            text.replace_range(span.range(), &new);
        }
        text
    }

    #[test]
    fn entries_move_with_their_lines_and_comments() {
        assert_eq!(
            move_it(
                "roles:\n  r:\n    cpu: 4 # all\n    run: |\n      a\n        b\n",
                "roles.r.cpu",
                "roles.r.resources.cpu"
            ),
            "roles:\n  r:\n    run: |\n      a\n        b\n    resources:\n      cpu: 4 # all\n"
        );
        assert_eq!(
            move_it("name: a\nrun: |\n  a\n\n  b\n", "run", "roles.main.run"),
            "name: a\nroles:\n  main:\n    run: |\n      a\n\n      b\n"
        );
        assert_eq!(
            move_it("roles: {r: {cpu: 4, run: x}}\n", "roles.r.cpu", "roles.r.resources.cpu"),
            "roles: {r: {resources: {cpu: 4}, run: x}}\n"
        );
        assert_eq!(
            move_it("a:\n  b: {c: 1}\n  d: 1.50\ne: 1\n", "a.d", "a.b.d"),
            "a:\n  b: {d: 1.5, c: 1}\ne: 1\n"
        );
        assert_eq!(
            move_it("{\"a\": {\"b\": 1, \"c\": \"x\"}}", "a.c", "c"),
            "{\"c\": \"x\", \"a\": {\"b\": 1}}"
        );
        assert_eq!(move_it("a: x\nb: 1\n", "b", "a.b"), "-");
    }

    #[test]
    fn entries_get_another_shape() {
        let check = |text: &str, pointer: &str, shape: &Shape| {
            let (sources, document) = document(text);
            let Some((span, new)) = reshaped(&document, &sources, &path(pointer), shape) else {
                return "-".to_owned();
            };
            let mut text = text.to_owned();
            text.replace_range(span.range(), &new);
            text
        };
        assert_eq!(
            check("a:\n  b:\n    - 1\n\n    - 2\n  c: 1\n", "a.b", &Shape::Comment),
            "a:\n  # b:\n  #   - 1\n\n  #   - 2\n  c: 1\n"
        );
        assert_eq!(check("a:\n  b: 1\n", "a.b", &Shape::Comment), "-");
        assert_eq!(check("a: {b: 1, c: 2}\n", "a.b", &Shape::Comment), "-");
        assert_eq!(
            check("a:\n  limits:\n    # why\n    b: 1\n    c: |\n      x\n", "a.limits", &Shape::Unwrapped),
            "a:\n  # why\n  b: 1\n  c: |\n    x\n"
        );
        assert_eq!(check("a: {limits: {b: 1, c: 2}}\n", "a.limits", &Shape::Unwrapped), "a: {b: 1, c: 2}\n");
        assert_eq!(
            check("a:\n  limits: {b: 1, c: 2}\n", "a.limits", &Shape::Unwrapped),
            "a:\n  b: 1\n  c: 2\n"
        );
        let names =
            Shape::ByName { names: vec!["x".to_owned(), "y".to_owned()], key: Some("name".to_owned()) };
        assert_eq!(
            check("a:\n- name: x\n  run: 1 # one\n- run: |\n    b\n  name: y\nc: 1\n", "a", &names),
            "a:\n  x:\n    run: 1 # one\n  y:\n    run: |\n      b\nc: 1\n"
        );
        assert_eq!(check("a: [{name: x, b: 1}, {name: y}]\n", "a", &names), "a: {x: {b: 1}, y: {}}\n");
    }
}
