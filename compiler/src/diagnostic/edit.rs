//! Edits that are described by their content and located in the file: new entries of maps, and words of commands.

mod shape;

use jobc_schema::Pointer;
use serde_json::Value as Json;

use crate::document::{Document, Entry, Node, Part, Value};
use crate::source::{Sources, Span};

pub use shape::Shape;
pub(super) use shape::{moved, reshaped};

/// The bytes and the text of an edit that gives a path a value: the value there is replaced, else the entry is added to
/// the nearest map above. `None` if the file has no map to add it to, or has it in a template.
pub(super) fn entry(
    document: &Document,
    sources: &Sources,
    pointer: &Pointer,
    value: &Json,
) -> Option<(Span, String)> {
    let segments: Vec<String> = pointer.segments().collect();
    let (mut node, mut depth) = (&document.root, 0);
    while let Some(next) = segments.get(depth).and_then(|segment| node.get(segment)) {
        (node, depth) = (next, depth + 1);
    }
    if node.span.source != document.root.span.source {
        return None;
    }
    let json = is_json(&document.root, sources);
    let [key, inner @ ..] = &segments[depth..] else {
        // After a key without a value there may be no space.
        let there = node.value != Value::Null;
        return there.then(|| whole(document, sources, pointer, flow(value, json)));
    };
    let map = |value: Json, key: &String| Json::Object([(key.clone(), value)].into_iter().collect());
    let value = inner.iter().rev().fold(value.clone(), map);
    let entry = format!("{}: {}", name(key, json), flow(&value, json));
    insert(node, sources, &entry, if depth == 0 { "roles" } else { "run" })
}

/// Adds an entry to a map: before `preferred`, where the map has that key, else before the first one.
fn insert(node: &Node, sources: &Sources, entry: &str, preferred: &str) -> Option<(Span, String)> {
    let Value::Mapping(entries) = &node.value else { return None };
    let text = sources.get(node.span.source).text();
    let at = |start: usize| Span::new(node.span.source, start, start);
    let in_braces = text.as_bytes().get(node.span.start as usize) == Some(&b'{');
    // The content of a merge key is elsewhere in the file.
    let mut own = entries.iter().filter(|entry| node.span.range().contains(&(entry.key_span.start as usize)));
    let first = own.clone().next();
    let Some(before) = own.find(|entry| entry.key == preferred).or(first) else {
        return in_braces.then(|| (at(node.span.start as usize + 1), entry.to_owned()));
    };
    let start = before.key_span.start as usize;
    let line = text.get(..start)?.rsplit('\n').next()?;
    let break_line = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let indent: String = line.chars().map(|_| ' ').collect();
    let (comma, between) = match (in_braces, line.trim().is_empty()) {
        (true, false) => (",", " ".to_owned()),
        (true, true) => (",", format!("{break_line}{indent}")),
        (false, _) => ("", format!("{break_line}{indent}")),
    };
    Some((at(start), format!("{entry}{comma}{between}")))
}

/// The bytes of an entry with all that only it needs: its lines, or its comma. Nothing where it is the only entry of a
/// map that is not in braces.
pub(super) fn removal(document: &Document, sources: &Sources, pointer: &Pointer) -> Option<Span> {
    let (parent, key) = (pointer.parent()?, pointer.last()?);
    let node = document.at(&parent)?;
    let entries = node.entries();
    let at = entries.iter().position(|entry| entry.key == key)?;
    let entry = &entries[at];
    let own = node.span.range();
    if node.span.source != document.root.span.source || !own.contains(&(entry.key_span.start as usize)) {
        return None;
    }
    let text = sources.get(node.span.source).text();
    let span = |start: usize, end: usize| Some(Span::new(node.span.source, start, end));
    let (start, end) = (entry.key_span.start as usize, entry.value.span.end.max(entry.key_span.end) as usize);
    if text.as_bytes().get(own.start) == Some(&b'{') {
        return match (entries.get(at + 1), at.checked_sub(1).and_then(|before| entries.get(before))) {
            (Some(next), _) => span(start, next.key_span.start as usize),
            (None, Some(before)) => span(before.value.span.end.max(before.key_span.end) as usize, end),
            (None, None) => span(start, end),
        };
    }
    let line = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    if entries.len() < 2 || !text.get(line..start)?.trim().is_empty() {
        return None;
    }
    let rest = text.get(end..)?;
    let ended = text.get(..end)?.ends_with('\n');
    let length = if ended { 0 } else { rest.find('\n').map_or(rest.len(), |at| at + 1) };
    span(line, end + length)
}

/// The bytes of words that the value at a path has once, as the file writes it, and other words for them.
pub(super) fn words(
    document: &Document,
    sources: &Sources,
    pointer: &Pointer,
    (words, new): (&str, &str),
) -> Option<(Span, String)> {
    let node = document.at(pointer)?;
    let raw = sources.slice(node.span);
    let mut found = raw.match_indices(words);
    let (start, _) = found.next()?;
    if found.next().is_some() || node.span.source != document.root.span.source {
        return None;
    }
    let at = node.span.start as usize + start;
    let span = Span::new(node.span.source, at, at + words.len());
    let is_plain = node.as_str().is_some_and(|text| text == raw);
    if is_plain && new.contains(['{', '}', '[', ']', ',', '#']) && in_flow(document, sources, pointer) {
        // YAML would read the braces as a map.
        let text = raw.replacen(words, new, 1);
        return Some((node.span, Json::String(text).to_string()));
    }
    let quote = raw.chars().next().filter(|_| node.as_str().is_some());
    Some((span, in_quotes(new, quote.unwrap_or(' '))))
}

/// Whether a value stands inside braces or brackets.
fn in_flow(document: &Document, sources: &Sources, pointer: &Pointer) -> bool {
    let mut above = pointer.parent();
    while let Some(at) = above {
        if document.at(&at).is_some_and(|node| sources.slice(node.span).starts_with(['{', '['])) {
            return true;
        }
        above = at.parent();
    }
    false
}

/// A text as a scalar in such quotes has it.
fn in_quotes(text: &str, quote: char) -> String {
    match quote {
        '"' => text.replace('\\', "\\\\").replace('"', "\\\""),
        '\'' => text.replace('\'', "\'\'"),
        _ => text.to_owned(),
    }
}

/// An edit of a whole value: a list or map on its own lines is replaced from its key's colon on, because the new text
/// is on one line.
pub(super) fn whole(
    document: &Document,
    sources: &Sources,
    pointer: &Pointer,
    text: String,
) -> (Span, String) {
    let span = document.span(pointer, Part::Value);
    let is_block =
        document.at(pointer).is_some_and(|node| matches!(node.value, Value::Sequence(_) | Value::Mapping(_)))
            && !sources.slice(span).starts_with(['{', '[']);
    let key = document.span(pointer, Part::Key);
    // An item of a list has no key.
    if !is_block || key.end > span.start || !sources.slice(Span { start: key.end, ..span }).starts_with(':') {
        return (span, text);
    }
    (Span { start: key.end, ..span }, format!(": {text}"))
}

/// A text as JSON, where it takes the place of a whole value or key of a JSON file.
pub(super) fn as_json(document: &Document, sources: &Sources, span: Span, text: &str) -> Option<String> {
    let is_value = |text: &str| serde_json::from_str::<Json>(text).is_ok();
    let replaces = span.source == document.root.span.source
        && is_json(&document.root, sources)
        && is_value(sources.slice(span));
    (replaces && !is_value(text)).then(|| Json::String(text.to_owned()).to_string())
}

/// Whether a file is JSON: a map in braces, with its keys in quotes.
fn is_json(root: &Node, sources: &Sources) -> bool {
    let quoted = |entry: &Entry| sources.slice(entry.key_span).starts_with('"');
    sources.slice(root.span).starts_with('{') && root.entries().first().is_some_and(quoted)
}

/// A value on one line.
pub(crate) fn flow(value: &Json, json: bool) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| flow(item, json)).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(entries) => {
            let entry =
                |(key, value): (&String, &Json)| format!("{}: {}", name(key, json), flow(value, json));
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Json::String(text) if !json && is_plain(text) => text.clone(),
        _ => value.to_string(),
    }
}

fn name(key: &str, json: bool) -> String {
    flow(&Json::String(key.to_owned()), json)
}

/// Whether YAML reads a text without quotes as itself, also inside braces.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.'))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off"
        )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diagnostic::Sink;
    use crate::parse::parse;
    use crate::source::Source;

    /// A text after the edit, or `-`.
    fn check(text: &str, pointer: &str, value: &Json) -> String {
        let mut sources = Sources::new();
        let id = sources.add(Source::new(if text.starts_with('{') { "job.json" } else { "job.yaml" }, text));
        let document = parse(&sources, id, &mut Sink::new()).unwrap();
        let pointer = Pointer::ROOT.keys(pointer.split('.'));
        let Some((span, new)) = entry(&document, &sources, &pointer, value) else { return "-".to_owned() };
        let mut text = text.to_owned();
        text.replace_range(span.range(), &new);
        let mut sources = Sources::new();
        let id = sources.add(Source::new("after", text.clone()));
        let after = parse(&sources, id, &mut Sink::new()).unwrap();
        let path = pointer.segments().fold(String::new(), |path, segment| format!("{path}/{segment}"));
        assert_eq!(after.to_json().pointer(&path), Some(value), "{text}");
        text
    }

    #[test]
    fn entries_are_written_as_their_neighbors_are() {
        assert_eq!(
            check(
                "name: a\nroles:\n  r:\n    run: x\n",
                "distributed",
                &json!({"framework": "torchrun", "roles": ["r"]})
            ),
            "name: a\ndistributed: {framework: torchrun, roles: [r]}\nroles:\n  r:\n    run: x\n"
        );
        assert_eq!(
            check("roles:\n  r:\n    # c\n    env: {}\n    run: x\n", "roles.r.resources.gpu", &json!(1)),
            "roles:\n  r:\n    # c\n    env: {}\n    resources: {gpu: 1}\n    run: x\n"
        );
        assert_eq!(
            check("roles: {r: {run: x}}\n", "roles.r.launch", &json!("all")),
            "roles: {r: {launch: all, run: x}}\n"
        );
        assert_eq!(check("a: {}\n", "a.b", &json!("${{ c }}")), "a: {b: \"${{ c }}\"}\n");
        assert_eq!(
            check("{\n  \"roles\": {\"r\": {\"run\": \"x\"}}\n}\n", "network", &json!("job")),
            "{\n  \"network\": \"job\",\n  \"roles\": {\"r\": {\"run\": \"x\"}}\n}\n"
        );
        assert_eq!(
            check("a:\n  - b: 1\n    c: 2\n", "a.0.d", &json!(true)),
            "a:\n  - d: true\n    b: 1\n    c: 2\n"
        );
    }

    #[test]
    fn words_are_replaced_as_the_text_is_quoted() {
        let check = |text: &str| {
            let mut sources = Sources::new();
            let id = sources.add(Source::new("job.yaml", text));
            let document = parse(&sources, id, &mut Sink::new()).unwrap();
            let at = Pointer::ROOT.key("run");
            let (span, new) = words(&document, &sources, &at, ("x", "\"${{ y }}\"")).unwrap();
            let mut text = text.to_owned();
            text.replace_range(span.range(), &new);
            text
        };
        assert_eq!(check("run: a x\n"), "run: a \"${{ y }}\"\n");
        assert_eq!(check("run: \"a x\"\n"), "run: \"a \\\"${{ y }}\\\"\"\n");
        assert_eq!(check("run: |\n  a x\n"), "run: |\n  a \"${{ y }}\"\n");
        assert_eq!(check("{run: a x}\n"), "{run: \"a \\\"${{ y }}\\\"\"}\n");
        assert_eq!(check("run: [a, 'x']\n"), "run: [a, '\"${{ y }}\"']\n");
    }

    #[test]
    fn values_are_replaced() {
        assert_eq!(check("a: {b: false}\n", "a.b", &json!(true)), "a: {b: true}\n");
        assert_eq!(check("a:\n  - x\n  - y\n", "a", &json!(["z"])), "a: [z]\n");
        assert_eq!(check("b:\n  a:\n  - x\n  - y\n", "b.a", &json!("z")), "b:\n  a: z\n");
    }

    #[test]
    fn entries_are_removed_with_their_lines_or_commas() {
        let check = |text: &str, pointer: &str| {
            let mut sources = Sources::new();
            let id = sources.add(Source::new("job.yaml", text));
            let document = parse(&sources, id, &mut Sink::new()).unwrap();
            let span = removal(&document, &sources, &Pointer::ROOT.keys(pointer.split('.')));
            let mut text = text.to_owned();
            let Some(span) = span else { return "-".to_owned() };
            text.replace_range(span.range(), "");
            text
        };
        assert_eq!(check("a: {b: 1, c: 2}\n", "a.b"), "a: {c: 2}\n");
        assert_eq!(check("a: {b: 1, c: 2}\n", "a.c"), "a: {b: 1}\n");
        assert_eq!(check("a: {b: 1}\n", "a.b"), "a: {}\n");
        assert_eq!(check("a:\n  b: 1 # why\n  c:\n    d: 2\n", "a.b"), "a:\n  c:\n    d: 2\n");
        assert_eq!(check("a:\n  b: 1\n  c: |\n    d\n    e\nf: 1\n", "a.c"), "a:\n  b: 1\nf: 1\n");
        assert_eq!(check("a:\n  b: 1\n  c:\n    d: 2\n", "a.c"), "a:\n  b: 1\n");
        assert_eq!(check("a:\n  b: 1\n", "a.b"), "-");
        assert_eq!(check("- b: 1\n  c: 2\n", "0.b"), "-");
    }

    #[test]
    fn entries_are_only_added_to_maps() {
        assert_eq!(check("a: x\n", "a.b", &json!(1)), "-");
        assert_eq!(check("a:\nb: 1\n", "a", &json!(1)), "-");
    }
}
