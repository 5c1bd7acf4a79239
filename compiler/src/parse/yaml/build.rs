//! The tree under construction: open lists and maps, anchors, and the schema's rules for keys and scalars.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Location, Safety, codes};
use crate::document::{Entry, Node, Value};
use crate::source::Span;

use super::super::keys::{Keys, shorten};
use super::super::limits::{Budget, MAX_DEPTH, Weight};
use super::super::report::Report;
use super::super::{limits, scalar};
use super::braces::{self, Braces};

mod alias;
mod duplicate;
mod key;
mod merge;
mod value;

use merge::Merge;

/// The style of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Quoted,
    Block,
}

/// A scalar as the parser reports it.
#[derive(Debug)]
pub(super) struct Scalar<'t> {
    pub(super) value: Cow<'t, str>,
    pub(super) style: Style,
    /// Whether the value is absent.
    pub(super) absent: bool,
    pub(super) range: Range<usize>,
}

/// A tag before a node: its name in the core schema, if it has one, and its span.
struct Tag {
    core: Option<String>,
    range: Range<usize>,
}

/// What the next value of a map belongs to.
enum PendingKey {
    /// A key.
    Key(String, Span),
    /// `<<`, which is reported and then merged as intended, to avoid further errors.
    Merge(Span),
    /// A key that was already reported; its value is parsed and dropped.
    Dropped,
    /// A key that the map already has.
    Again(String, Span),
}

enum Items {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, keys: Keys, pending: Option<PendingKey>, merges: Vec<Merge> },
}

/// A list or map that is still open.
struct Frame {
    items: Items,
    start: usize,
    /// End of the last child, where a block collection ends.
    end: usize,
    flow: bool,
    anchor: usize,
    weight: Weight,
    /// A map where its first key belongs, directly after the bracket: `{{`.
    braces: Option<Node>,
}

/// Builds the tree from the parser's events.
pub(super) struct Builder<'t, 'r, 's> {
    pub(super) text: &'t str,
    pub(super) report: &'r mut Report<'s>,
    frames: Vec<Frame>,
    root: Option<Node>,
    tag: Option<Tag>,
    /// The value of each finished anchor.
    anchors: BTreeMap<usize, (Node, Weight)>,
    /// The names of all anchors, in source order.
    names: Vec<(usize, String)>,
    budget: Budget,
    /// End of the parser's last event.
    last: usize,
    /// Values in double braces, which are reported when all names of the file are known.
    braces: Vec<Braces>,
}

impl<'t, 'r, 's> Builder<'t, 'r, 's> {
    pub(super) fn new(text: &'t str, report: &'r mut Report<'s>) -> Self {
        Self {
            text,
            report,
            frames: vec![],
            root: None,
            tag: None,
            anchors: BTreeMap::new(),
            names: vec![],
            budget: Budget::default(),
            last: 0,
            braces: vec![],
        }
    }

    /// Remembers a tag for the node that follows.
    pub(super) fn tag(&mut self, core: Option<String>, range: Range<usize>) {
        self.last = range.end;
        self.tag = Some(Tag { core, range });
    }

    pub(super) fn scalar(&mut self, scalar: Scalar<'_>, anchor: usize) -> bool {
        let tag = self.tag.take();
        if self.at_key() {
            self.scalar_key(scalar, tag.as_ref(), anchor);
            return true;
        }
        let node = self.scalar_value(scalar, tag.as_ref());
        let text = if let Value::String(text) = &node.value { text.len() } else { 0 };
        self.finish_node(node, Weight::scalar(text), anchor)
    }

    pub(super) fn open_list(&mut self, range: Range<usize>, flow: bool, anchor: usize) -> bool {
        self.collection_tag("seq", "a list");
        let range = if flow { range } else { self.first_dash(range.start)..range.end };
        self.open(Items::List(vec![]), range, flow, anchor)
    }

    pub(super) fn open_map(&mut self, range: Range<usize>, flow: bool, anchor: usize) -> bool {
        self.collection_tag("map", "a map");
        let items = Items::Map { entries: vec![], keys: Keys::default(), pending: None, merges: vec![] };
        self.open(items, range, flow, anchor)
    }

    /// The start of a block list: the parser skips the dash of a list that is not indented.
    fn first_dash(&self, start: usize) -> usize {
        let mut at = self.last().min(start);
        for line in self.text[at..start].split_inclusive('\n') {
            let body = line.trim_start();
            if body.starts_with('-') {
                return at + line.len() - body.len();
            }
            at += line.len();
        }
        start
    }

    fn open(&mut self, items: Items, range: Range<usize>, flow: bool, anchor: usize) -> bool {
        if self.frames.len() >= MAX_DEPTH {
            self.too_deep(range.start);
            return false;
        }
        self.last = range.end;
        let weight = Weight::collection();
        let (start, end) = (range.start, range.end);
        self.frames.push(Frame { items, start, end, flow, anchor, weight, braces: None });
        true
    }

    /// Closes the innermost list or map; `end` is the end of a flow collection's bracket.
    pub(super) fn close(&mut self, end: usize) -> bool {
        let Some(frame) = self.frames.pop() else { return true };
        let end = if frame.flow { end } else { frame.end };
        if frame.flow {
            self.last = self.last.max(end);
        }
        let span = self.report.span(frame.start, end);
        if let Some(inner) = &frame.braces {
            let is_alone = matches!(&frame.items, Items::Map { entries, merges, .. } if entries.is_empty() && merges.is_empty());
            if is_alone && self.text[..end].ends_with("}}") && !self.at_key() {
                let in_flow = self.frames.iter().any(|frame| frame.flow);
                self.braces.push(Braces { range: frame.start..end, in_flow });
                let value = Value::String(braces::as_written(&self.text[frame.start..end]));
                return self.finish_node(Node { span, value }, frame.weight, frame.anchor);
            }
            self.report_complex_key(inner);
        }
        let value = match frame.items {
            Items::List(items) => Value::Sequence(items),
            Items::Map { mut entries, mut keys, merges, .. } => {
                for merge in merges {
                    let (first, range) = (entries.len(), merge.range);
                    for entry in merge.entries {
                        if keys.find(&entries, &entry.key).is_none() {
                            entries.push(entry);
                        }
                    }
                    let is_sound = merge.is_sound;
                    merge::report(self.text, &range, &entries[first..], (frame.flow, is_sound), self.report);
                }
                Value::Mapping(entries)
            }
        };
        self.finish_node(Node { span, value }, frame.weight, frame.anchor)
    }

    /// Takes a finished document that is an object of Kubernetes, so that another one may follow; an empty one before such
    /// an object is dropped. Returns whether the document is one of these.
    pub(super) fn take_object(&mut self, objects: &mut Vec<Node>) -> bool {
        let is_text = |root: &Node, key: &str| root.get(key).is_some_and(|node| node.as_str().is_some());
        match &self.root {
            Some(root) if is_text(root, "apiVersion") && is_text(root, "kind") => {
                objects.extend(self.root.take());
                true
            }
            Some(root) if root.value != Value::Null => false,
            _ => {
                let is_manifest = self.text.lines().any(|line| line.starts_with("apiVersion:"));
                self.root = self.root.take().filter(|_| !is_manifest);
                is_manifest
            }
        }
    }

    /// The list of all objects of a file, as `kind: List` has them.
    pub(super) fn finish_list(mut self, mut objects: Vec<Node>) -> Node {
        objects.extend(self.root.take().filter(|root| root.value != Value::Null));
        if objects.len() == 1 {
            return objects.remove(0);
        }
        let start = objects.first().map_or(0, |object| object.span.start as usize);
        let end = objects.last().map_or(0, |object| object.span.end as usize);
        let at = self.report.span(start, start);
        let text = |text: &str| Node { span: at, value: Value::String(text.to_owned()) };
        let list = Node { span: self.report.span(start, end), value: Value::Sequence(objects) };
        let entry = |key: &str, value: Node| Entry { key: key.to_owned(), key_span: at, value };
        let entries =
            vec![entry("apiVersion", text("v1")), entry("kind", text("List")), entry("items", list)];
        Node { span: self.report.span(start, end), value: Value::Mapping(entries) }
    }

    /// The finished tree, if there is one.
    pub(super) fn finish(self) -> Option<Node> {
        match self.root {
            Some(root) if root.value != Value::Null => Some(root),
            _ => {
                self.report.empty(self.text);
                None
            }
        }
    }

    /// Reports values in double braces, also that of the line of a syntax error; `true` if that has one.
    pub(super) fn report_braces(&mut self, error: Option<usize>) -> bool {
        let mut found = std::mem::take(&mut self.braces);
        let on_line = error.and_then(|at| braces::on_line(self.text, at));
        if let Some(range) = &on_line {
            found.retain(|known| !range.contains(&known.range.start));
            found.push(Braces { range: range.clone(), in_flow: false });
        }
        let entries: &[Entry] = match (&self.root, self.frames.first()) {
            (Some(root), _) => root.entries(),
            (None, Some(Frame { items: Items::Map { entries, .. }, .. })) => entries,
            _ => &[],
        };
        let meant = braces::report(self.text, &found, entries, self.report);
        if let Some(root) = self.root.as_mut().filter(|_| !meant.is_empty()) {
            braces::fill(root, &meant);
        }
        on_line.is_some()
    }

    /// Reports each `<<` of the maps that a syntax error leaves open.
    pub(super) fn report_open_merges(&mut self) {
        for frame in &self.frames {
            let Items::Map { merges, .. } = &frame.items else { continue };
            for merge in merges {
                merge::report(self.text, &merge.range, &[], (frame.flow, merge.is_sound), self.report);
            }
        }
    }

    /// The starts of the outermost and the innermost open flow collection.
    pub(super) fn open_flow(&self) -> Option<(usize, usize)> {
        let mut flows = self.frames.iter().filter(|frame| frame.flow).map(|frame| frame.start);
        let outer = flows.next()?;
        Some((outer, flows.next_back().unwrap_or(outer)))
    }

    /// End of the last token that became part of the tree.
    pub(super) fn last(&self) -> usize {
        self.last.min(self.text.len())
    }

    /// Whether the next node is a map's key.
    fn at_key(&self) -> bool {
        self.frames.last().is_some_and(|f| matches!(f.items, Items::Map { pending: None, .. }))
    }

    /// Stores a node for its aliases, and adds it to the tree.
    fn finish_node(&mut self, node: Node, weight: Weight, anchor: usize) -> bool {
        if anchor != 0 {
            if !self.budget.pay(weight) {
                self.over_budget(node.span);
                return false;
            }
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        self.attach(node, weight);
        true
    }

    fn attach(&mut self, node: Node, weight: Weight) {
        self.last = self.last.max(node.span.end as usize);
        if self.at_key() {
            self.complex_key(&node);
            return;
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.end = frame.end.max(node.span.end as usize);
        frame.weight.take(weight);
        match &mut frame.items {
            Items::List(items) => items.push(node),
            Items::Map { entries, pending, merges, .. } => match pending.take() {
                Some(PendingKey::Key(key, key_span)) => {
                    frame.weight.text += key.len();
                    entries.push(Entry { key, key_span, value: node });
                }
                Some(PendingKey::Again(key, span)) => {
                    duplicate::report(self.text, entries, (&key, span), &node, self.report);
                }
                Some(PendingKey::Merge(key)) => merges.push(Merge::new(key, node)),
                Some(PendingKey::Dropped) | None => {}
            },
        }
    }

    fn too_deep(&mut self, at: usize) {
        let message = format!("lists and maps nest deeper than {MAX_DEPTH} levels");
        let span = self.report.span(at, at + 1);
        self.report.push(
            Diagnostic::error(codes::LIMIT, message)
                .at_span(span, "this one is too deep")
                .note("a job needs about ten levels; is a bracket left open, or a list marked twice?"),
        );
    }

    /// Reports a tag that contradicts a list or map, or that is not in the core schema.
    fn collection_tag(&mut self, expected: &str, what: &str) {
        let Some(tag) = self.tag.take() else { return };
        match &tag.core {
            Some(core) if core == expected => {}
            Some(core) => {
                let message = format!("the tag `!!{core}` stands before {what}: remove it");
                self.refuse_tag(&tag, message);
            }
            None => self.custom_tag(&tag),
        }
    }

    fn custom_tag(&mut self, tag: &Tag) {
        let name = self.text.get(tag.range.clone()).unwrap_or("!");
        self.refuse_tag(tag, format!("the tag `{}` means nothing here: remove it", shorten(name)));
    }

    fn refuse_tag(&mut self, tag: &Tag, message: String) {
        let span = self.report.span(tag.range.start, tag.range.end);
        if !self.report.wants(codes::TAG, span) {
            return;
        }
        let blank = self.text[tag.range.end..].starts_with(' ');
        let cut = self.report.span(tag.range.start, tag.range.end + usize::from(blank));
        self.report.push(
            Diagnostic::error(codes::TAG, message)
                .at_span(span, "")
                .note(
                    "only `!!str` and the other core tags are read, and only where they agree with the value",
                )
                .fix("remove the tag", Location::Span(cut), "", Safety::Unsafe),
        );
    }
}
