//! `sourcemap.json`: where each part of each artifact comes from.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jobc_schema::Pointer;
use serde::{Serialize, Serializer};

use crate::backend::{FilePart, Origin, PartSource};
use crate::document::{Document, Value, inherited};
use crate::expand::Groups;
use crate::source::{Sources, Span};

/// The spans of a document's values by pointer, made once, since a map of a large job asks for many.
#[derive(Debug, Default)]
pub struct SpanIndex {
    spans: BTreeMap<String, Span>,
    groups: Groups,
}

impl SpanIndex {
    /// Walks a document; `groups` are those of its roles that stand for combinations of a matrix.
    pub fn new(document: &Document, groups: Groups) -> Self {
        let mut spans = BTreeMap::new();
        let mut todo = vec![(Pointer::ROOT, &document.root)];
        while let Some((at, node)) = todo.pop() {
            match &node.value {
                Value::Mapping(entries) => todo.extend(entries.iter().map(|e| (at.key(&e.key), &e.value))),
                Value::Sequence(items) => {
                    todo.extend(items.iter().enumerate().map(|(i, n)| (at.index(i), n)));
                }
                _ => {}
            }
            spans.insert(at.into_string(), node.span);
        }
        Self { spans, groups }
    }

    /// The span at a pointer, or at its nearest ancestor that exists; of what the job gives all roles, the job's.
    fn get(&self, pointer: &Pointer) -> Option<Span> {
        let of_job = inherited(pointer, |at| self.spans.contains_key(at.as_str()));
        let mut at = of_job.as_ref().unwrap_or(pointer).as_str();
        loop {
            if let Some(span) = self.spans.get(at) {
                return Some(*span);
            }
            at = &at[..at.rfind('/')?];
        }
    }
}

impl SpanIndex {
    /// A place as the job file has it: that of a combination is the role's, that of what the job gives all roles its
    /// own.
    fn in_file<'a>(&self, pointer: &'a Pointer) -> Cow<'a, Pointer> {
        if let Some(of_job) = inherited(pointer, |at| self.spans.contains_key(at.as_str())) {
            return Cow::Owned(of_job);
        }
        let mut segments = pointer.segments();
        let (first, role) = (segments.next(), segments.next().unwrap_or_default());
        match self.groups.get(&role).filter(|_| first.as_deref() == Some("roles")) {
            Some(group) => {
                let rest: Vec<String> = segments.collect();
                let role = ["roles", &group.role].into_iter();
                Cow::Owned(Pointer::ROOT.keys(role.chain(rest.iter().map(String::as_str))))
            }
            None => Cow::Borrowed(pointer),
        }
    }
}

/// The map of one target's artifacts: path -> parts, each with the place of the job file, the target's setting or the
/// default that it comes from. Lines and columns count from 1. Every file is listed, even without known parts: so the
/// next build knows what this one wrote.
///
/// The map is serialised part by part and never held as a tree, because it has a part for every field of every role.
#[derive(Serialize)]
pub struct SourceMap<'a> {
    version: u32,
    artifacts: Artifacts<'a>,
}

impl<'a> SourceMap<'a> {
    /// The map of these artifacts, each with its path below the target's directory.
    pub fn new(artifacts: &'a [(String, Vec<Origin>)], spans: &'a SpanIndex, sources: &'a Sources) -> Self {
        Self { version: 1, artifacts: Artifacts { artifacts, places: Places { spans, sources } } }
    }
}

/// What turns pointers into places.
#[derive(Clone, Copy)]
struct Places<'a> {
    spans: &'a SpanIndex,
    sources: &'a Sources,
}

struct Artifacts<'a> {
    artifacts: &'a [(String, Vec<Origin>)],
    places: Places<'a>,
}

impl Serialize for Artifacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = |origins| Parts { origins, places: self.places };
        serializer.collect_map(self.artifacts.iter().map(|(path, origins)| (path, parts(origins))))
    }
}

struct Parts<'a> {
    origins: &'a [Origin],
    places: Places<'a>,
}

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.origins.iter().map(|origin| Part::new(origin, self.places)))
    }
}

/// One part of an artifact, and where it comes from.
#[derive(Default, Serialize)]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a Pointer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Cow<'a, Pointer>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a Pointer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
}

impl<'a> Part<'a> {
    fn new(origin: &'a Origin, places: Places<'a>) -> Self {
        let mut part = Self::default();
        match &origin.part {
            FilePart::Pointer(pointer) => part.pointer = Some(pointer),
            FilePart::Line(line) => part.line = Some(*line),
        }
        match &origin.from {
            PartSource::Spec(pointer) => {
                part.spec = Some(places.spans.in_file(pointer));
                if let Some(span) = places.spans.get(pointer) {
                    let source = places.sources.get(span.source);
                    let (start, end) = (source.line_column(span.start), source.line_column(span.end));
                    part.file = Some(source.path().file_name().unwrap_or(source.path().as_str()));
                    part.start = Some([start.line, start.column]);
                    part.end = Some([end.line, end.column]);
                }
            }
            PartSource::Target(pointer) => part.target = Some(pointer),
            PartSource::Default(words) => part.default = Some(words),
        }
        part
    }
}
