//! The lines of a text: which values of a YAML or JSON file are on a line, and on which line a value is.

use std::collections::BTreeMap;

use crate::diagnostic::Sink;
use crate::document::{Document, Node, Value};
use crate::parse::parse;
use crate::source::{Source, Sources};
use jobc_schema::Pointer;

/// A text and, if it is YAML or JSON, its tree.
pub struct Lines {
    sources: Sources,
    tree: Option<Document>,
    /// In source order.
    spans: Vec<Span>,
    /// The line of each value's key, and the last line of its content.
    extents: BTreeMap<String, (u32, u32)>,
}

/// A value of a tree: where it begins, and where it ends if it has no children.
struct Span {
    pointer: Pointer,
    first: u32,
    last: u32,
    /// The end of its content.
    end: u32,
}

impl Lines {
    /// Parses a text by the extension of its path; other texts have only lines.
    pub fn new(path: &str, text: &str) -> Self {
        let mut sources = Sources::new();
        let id = sources.add(Source::new(path, text));
        let is_tree = [".yaml", ".yml", ".json"].iter().any(|ending| path.ends_with(ending));
        let tree = if is_tree { parse(&sources, id, &mut Sink::new()) } else { None };
        let mut lines = Self { sources, tree, spans: vec![], extents: BTreeMap::new() };
        let mut spans = vec![];
        if let Some(tree) = &lines.tree {
            lines.walk(&tree.root, &Pointer::ROOT, None, &mut spans);
        }
        let extent = |span: &Span| (span.pointer.as_str().to_owned(), (span.first, span.end));
        // Of duplicate keys, the first one.
        lines.extents = spans.iter().rev().map(extent).collect();
        lines.spans = spans;
        lines
    }

    /// The tree of a YAML or JSON file.
    pub fn tree(&self) -> Option<&Document> {
        self.tree.as_ref()
    }

    /// The text of a line, without surrounding blanks; empty after the end.
    pub fn text(&self, line: u32) -> Option<&str> {
        let (_, source) = self.sources.iter().next()?;
        source.text().lines().nth(line as usize - 1).map(str::trim)
    }

    /// The number of lines.
    pub fn count(&self) -> usize {
        self.sources.iter().next().map_or(0, |(_, source)| source.text().lines().count())
    }

    /// The innermost values on a line, in source order; none for a text without a tree.
    pub fn pointers_at(&self, line: u32) -> Vec<Pointer> {
        let on_line: Vec<&Span> =
            self.spans.iter().filter(|span| (span.first..=span.last).contains(&line)).collect();
        let has_inner = |outer: &Pointer| {
            on_line.iter().any(|inner| inner.pointer.as_str().starts_with(&format!("{}/", outer.as_str())))
        };
        on_line.iter().map(|span| span.pointer.clone()).filter(|pointer| !has_inner(pointer)).collect()
    }

    /// Whether a value has no others in it.
    pub(super) fn is_value(&self, pointer: &Pointer) -> bool {
        let node = self.tree.as_ref().and_then(|tree| tree.at(pointer));
        node.is_some_and(|node| match &node.value {
            Value::Mapping(entries) => entries.is_empty(),
            Value::Sequence(items) => items.is_empty(),
            _ => true,
        })
    }

    /// The values whose whole content is on a line, other than the innermost ones: `retry` of
    /// `retry: {max: 2}`.
    pub fn containers_at(&self, line: u32) -> Vec<Pointer> {
        let on_line = self.spans.iter().filter(|span| span.first == line && span.end == line);
        let innermost = self.pointers_at(line);
        on_line.map(|span| span.pointer.clone()).filter(|pointer| !innermost.contains(pointer)).collect()
    }

    /// The line of a value's key, or of its nearest existing ancestor.
    pub fn line_of(&self, pointer: &str) -> Option<u32> {
        let mut at = pointer;
        loop {
            if let Some((first, _)) = self.extents.get(at) {
                return Some(*first);
            }
            at = &at[..at.rfind('/')?];
        }
    }

    /// The last line of a value with its content; `None` for a missing value.
    pub fn last_line_of(&self, pointer: &str) -> Option<u32> {
        self.extents.get(pointer).map(|(_, last)| *last)
    }

    /// The last line before the next empty one.
    pub(super) fn end_of_block(&self, line: u32) -> u32 {
        let text = self.sources.iter().next().map_or("", |(_, source)| source.text());
        let below = text.lines().skip(line as usize).take_while(|text| !text.trim().is_empty());
        (line..).zip(below).last().map_or(line, |(above, _)| above + 1)
    }

    /// Adds the spans of a value and its descendants, and returns its last line.
    fn walk(&self, node: &Node, at: &Pointer, key: Option<u32>, spans: &mut Vec<Span>) -> u32 {
        let line = |offset: u32| self.sources.get(node.span.source).line_column(offset).line;
        let first = key.unwrap_or_else(|| line(node.span.start));
        let is_leaf = match &node.value {
            Value::Mapping(entries) => entries.is_empty(),
            Value::Sequence(items) => items.is_empty(),
            _ => true,
        };
        // The end of a block scalar is after its last newline.
        let end = node.span.end.max(node.span.start + 1) - 1;
        let last = if is_leaf { line(end).max(first) } else { first };
        let own = spans.len();
        if *at != Pointer::ROOT {
            spans.push(Span { pointer: at.clone(), first, last, end: last });
        }
        let mut end = last;
        match &node.value {
            Value::Mapping(entries) => {
                for entry in entries {
                    let key = Some(line(entry.key_span.start));
                    end = end.max(self.walk(&entry.value, &at.key(&entry.key), key, spans));
                }
            }
            Value::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    end = end.max(self.walk(item, &at.index(index), None, spans));
                }
            }
            _ => {}
        }
        if *at != Pointer::ROOT {
            spans[own].end = end;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "name: x\nroles:\n  a:\n    run: |\n      one\n      two\n  b: {instances: 2, env: {A: 1}}\nlist:\n  - p: 1\n    q: 2\n";

    #[test]
    fn a_line_has_its_innermost_values() {
        let lines = Lines::new("job.yaml", JOB);
        let at = |line| lines.pointers_at(line).into_iter().map(Pointer::into_string).collect::<Vec<_>>();
        assert_eq!(at(1), ["/name"]);
        assert_eq!(at(2), ["/roles"]);
        assert_eq!(at(3), ["/roles/a"]);
        assert_eq!((at(4), at(6)), (vec!["/roles/a/run".to_owned()], vec!["/roles/a/run".to_owned()]));
        assert_eq!(at(7), ["/roles/b/instances", "/roles/b/env/A"]);
        assert_eq!(at(9), ["/list/0/p"]);
        assert_eq!(at(10), ["/list/0/q"]);
        assert_eq!(at(99), Vec::<String>::new());
        let containers =
            |line| lines.containers_at(line).into_iter().map(Pointer::into_string).collect::<Vec<_>>();
        assert_eq!(containers(7), ["/roles/b", "/roles/b/env"]);
        assert!(containers(4).is_empty() && containers(9).is_empty());
    }

    #[test]
    fn a_value_is_on_the_line_of_its_key() {
        let lines = Lines::new("job.yaml", JOB);
        for (pointer, line) in
            [("/roles/a/run", 4), ("/roles/b/env/A", 7), ("/list/0", 9), ("/roles/c/run", 2)]
        {
            assert_eq!(lines.line_of(pointer), Some(line), "{pointer}");
        }
        assert_eq!(Lines::new("Dockerfile", "FROM x\n").line_of("/a"), None);
    }
}
