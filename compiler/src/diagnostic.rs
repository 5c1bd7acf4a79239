//! Diagnostics: what is wrong, where, and what to write instead. They are data, rendered elsewhere.

pub mod apply;
pub mod codes;
mod edit;
pub mod render;

use std::ops::Range;

use jobc_schema::Pointer;
use serde_json::Value as Json;

use crate::document::{Document, Part};
use crate::source::{SourceId, Sources, Span};

pub use edit::Shape;
pub(crate) use edit::flow;

pub use codes::Code;

/// The severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Information; no action needed.
    Note,
    /// Probably not what was meant; the build continues.
    Warning,
    /// The job cannot be built.
    Error,
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// The stable code; see `jobc explain CODE`.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// What is wrong: lower case, no full stop, names in backticks.
    pub message: String,
    /// Where; the first is the primary one.
    pub labels: Vec<Label>,
    /// Further help: what to write instead, the reason, details.
    pub notes: Vec<String>,
    /// Edits that would fix it.
    pub fixes: Vec<Fix>,
}

/// A location and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Where.
    pub place: Location,
    /// The text of the label; may be empty on the primary label.
    pub text: String,
}

/// A location, as bytes or as a path that [`Sink::locate`] turns into bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// Bytes of a source.
    Span(Span),
    /// A path in one of the documents.
    Path {
        /// Which document.
        document: DocumentId,
        /// Where in it.
        pointer: Pointer,
        /// The key or the value there.
        part: Part,
    },
    /// A part of the text at a path of the job file, in bytes: shown alone where the file has the text letter by
    /// letter, else all of the value is.
    Inside {
        /// Where in the job file.
        pointer: Pointer,
        /// All of the text.
        text: String,
        /// Where the part begins.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// The entry at a path of a document, for an edit whose text is its value as JSON: an entry that is not there yet
    /// is added, with the maps around it. Without a text the entry is removed.
    Entry {
        /// Which document.
        document: DocumentId,
        /// Where in it.
        pointer: Pointer,
    },
    /// The end of the map where an entry goes, for an edit that writes the text of the entry there: under another
    /// name or with another value, which is the edit's text as JSON, if it has one.
    Moved {
        /// Which document.
        document: DocumentId,
        /// Where the entry is.
        from: Pointer,
        /// Where it goes.
        to: Pointer,
    },
    /// An entry that is restructured.
    Shaped {
        /// Which document.
        document: DocumentId,
        /// Where in it.
        pointer: Pointer,
        /// The new structure.
        shape: Shape,
    },
    /// Words of the value at a path of the job file, for an edit; they occur once.
    Words {
        /// Where in the job file.
        pointer: Pointer,
        /// The words.
        words: String,
    },
}

/// The document that a path refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentId {
    /// The job file.
    #[default]
    Job,
    /// `targets.yaml`.
    Targets,
}

/// An edit that would fix a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// What the edit does: `write \`memory: 32GiB\``.
    pub message: String,
    /// Replacements in one source, in order, not overlapping.
    pub edits: Vec<Edit>,
    /// Whether it may be applied unasked.
    pub safety: Safety,
}

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced; an empty span inserts.
    pub place: Location,
    /// The new text.
    pub text: String,
}

/// Whether a fix keeps the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Means what the user clearly meant.
    Safe,
    /// A guess; a person should look.
    Unsafe,
}

impl Diagnostic {
    /// An error with this code.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message)
    }

    /// A warning with this code.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, message)
    }

    /// A note with this code.
    pub fn info(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, message)
    }

    /// A finding of any severity.
    pub fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, severity, message, labels: vec![], notes: vec![], fixes: vec![] }
    }

    /// Points at bytes; the first call makes the primary label.
    #[must_use]
    pub fn at_span(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { place: Location::Span(span), text: text.into() });
        self
    }

    /// Points at the value of a path of the job file.
    #[must_use]
    pub fn at(self, pointer: &Pointer, text: impl Into<String>) -> Self {
        self.at_place(Location::value(pointer), text)
    }

    /// Points at the key of a path of the job file.
    #[must_use]
    pub fn at_key(self, pointer: &Pointer, text: impl Into<String>) -> Self {
        self.at_place(Location::key(pointer), text)
    }

    /// Points at any place.
    #[must_use]
    pub fn at_place(mut self, place: Location, text: impl Into<String>) -> Self {
        self.labels.push(Label { place, text: text.into() });
        self
    }

    /// Renumbers the sources that it points into.
    pub fn move_to(&mut self, number: impl Fn(SourceId) -> SourceId) {
        let edits = self.fixes.iter_mut().flat_map(|fix| &mut fix.edits);
        let places = self.labels.iter_mut().map(|label| &mut label.place);
        for place in places.chain(edits.map(|edit| &mut edit.place)) {
            if let Location::Span(span) = place {
                span.source = number(span.source);
            }
        }
    }

    /// Adds a sentence below.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds an edit that would fix it.
    #[must_use]
    pub fn fix(
        mut self,
        message: impl Into<String>,
        place: Location,
        text: impl Into<String>,
        safety: Safety,
    ) -> Self {
        let edits = vec![Edit { place, text: text.into() }];
        self.fixes.push(Fix { message: message.into(), edits, safety });
        self
    }
}

impl Diagnostic {
    /// Offers a value for a path of the job file: `write \`key: value\``.
    #[must_use]
    pub fn set(self, pointer: &Pointer, value: impl Into<Json>) -> Self {
        self.set_in(DocumentId::Job, pointer, value)
    }

    /// As above, for a path of either document.
    #[must_use]
    pub fn set_in(self, document: DocumentId, pointer: &Pointer, value: impl Into<Json>) -> Self {
        let value = value.into();
        let key = pointer.last().unwrap_or_default();
        let message = format!("write `{key}: {}`", edit::flow(&value, false));
        let place = Location::Entry { document, pointer: pointer.clone() };
        self.fix(message, place, value.to_string(), Safety::Unsafe)
    }

    /// Offers to leave out an entry of the job file.
    #[must_use]
    pub fn remove(self, pointer: &Pointer) -> Self {
        let message = format!("remove `{}`", pointer.last().unwrap_or_default());
        let place = Location::Entry { document: DocumentId::Job, pointer: pointer.clone() };
        self.fix(message, place, "", Safety::Unsafe)
    }

    /// Offers other words in a command, or to leave them out.
    #[must_use]
    pub fn reword(self, pointer: &Pointer, words: &str, new: &str) -> Self {
        let place = Location::Words { pointer: pointer.clone(), words: words.to_owned() };
        let message = if new.is_empty() {
            format!("remove `{}`", words.trim())
        } else {
            format!("write `{}`", new.trim())
        };
        self.fix(message, place, new, Safety::Unsafe)
    }
}

impl Diagnostic {
    /// Offers to move an entry with its text, to another name or with another value where one is given.
    #[must_use]
    pub fn move_entry(self, document: DocumentId, from: &Pointer, to: &Pointer, value: Option<Json>) -> Self {
        let path: Vec<String> = to.segments().collect();
        let message = format!("move it to `{}`", path.join("."));
        let removed =
            Edit { place: Location::Entry { document, pointer: from.clone() }, text: String::new() };
        let place = Location::Moved { document, from: from.clone(), to: to.clone() };
        let text = value.map(|value| value.to_string()).unwrap_or_default();
        let edits = vec![removed, Edit { place, text }];
        let mut diagnostic = self;
        diagnostic.fixes.push(Fix { message, edits, safety: Safety::Unsafe });
        diagnostic
    }

    /// Offers to restructure an entry.
    #[must_use]
    pub fn reshape(
        self,
        document: DocumentId,
        pointer: &Pointer,
        shape: Shape,
        message: impl Into<String>,
    ) -> Self {
        let place = Location::Shaped { document, pointer: pointer.clone(), shape };
        self.fix(message, place, "", Safety::Unsafe)
    }

    /// Makes the last fix write an entry as well; without the map it goes to, the fix is left out.
    #[must_use]
    pub fn also(mut self, pointer: &Pointer, value: impl Into<Json>) -> Self {
        if let Some(fix) = self.fixes.last_mut() {
            let value = value.into();
            let key = pointer.last().unwrap_or_default();
            let and = if fix.message.starts_with("remove") { ", and write" } else { " and" };
            fix.message += &format!("{and} `{key}: {}`", edit::flow(&value, false));
            let place = Location::Entry { document: DocumentId::Job, pointer: pointer.clone() };
            fix.edits.push(Edit { place, text: value.to_string() });
        }
        self
    }
}

/// The message for a misspelling.
fn did_you_mean(near: &str) -> String {
    format!("did you mean `{near}`?")
}

impl Diagnostic {
    /// Points at the value of a path of the job file, a misspelling of another text, and offers that one.
    #[must_use]
    pub fn suggest_value(self, pointer: &Pointer, wrong: &str, near: &str) -> Self {
        let inside = Location::inside(pointer, wrong, 0..wrong.len());
        self.at(pointer, did_you_mean(near)).write(inside, near)
    }

    /// The same for the key of a path, or an item of a list.
    #[must_use]
    pub fn meant_key(self, pointer: &Pointer, near: &str) -> Self {
        self.at_key(pointer, did_you_mean(near)).write(Location::key(pointer), near)
    }

    /// Offers another text in a place that is pointed at already: `write \`near\``.
    #[must_use]
    pub fn write(self, place: Location, near: &str) -> Self {
        self.fix(format!("write `{near}`"), place, near, Safety::Unsafe)
    }
}

/// The bytes of a text of the file without the quotes around it, if it has some.
pub fn unquoted(span: Span, text: &str) -> Span {
    let quoted = span.range().len() == text.len() + 2;
    if quoted { Span { start: span.start + 1, end: span.end - 1, ..span } } else { span }
}

impl Location {
    /// The value at a path of the job file.
    pub fn value(pointer: &Pointer) -> Self {
        Self::Path { document: DocumentId::Job, pointer: pointer.clone(), part: Part::Value }
    }

    /// The key at a path of the job file.
    pub fn key(pointer: &Pointer) -> Self {
        Self::Path { document: DocumentId::Job, pointer: pointer.clone(), part: Part::Key }
    }

    /// The value at a path of `targets.yaml`.
    pub fn target(pointer: &Pointer) -> Self {
        Self::Path { document: DocumentId::Targets, pointer: pointer.clone(), part: Part::Value }
    }

    /// A part of the text at a path of the job file.
    pub fn inside(pointer: &Pointer, text: &str, range: Range<usize>) -> Self {
        let (pointer, text) = (pointer.clone(), text.to_owned());
        Self::Inside { pointer, text, start: range.start, end: range.end }
    }

    /// The bytes, where the place is already located.
    pub fn span(&self) -> Option<Span> {
        if let Self::Span(span) = self { Some(*span) } else { None }
    }
}

/// Where passes put their findings.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    diagnostics: Vec<Diagnostic>,
    errors: usize,
}

impl Sink {
    /// An empty sink.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        self.diagnostics.push(diagnostic);
    }

    /// Whether anything so far stops the build.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether an error so far prevents planning; a missing file prevents neither the plan nor findings of backends.
    pub fn stops_the_plan(&self) -> bool {
        let stops = |d: &Diagnostic| d.severity == Severity::Error && d.code != codes::MISSING_FILE;
        self.has_errors() && self.diagnostics.iter().any(stops)
    }

    /// How many errors so far; a pass compares before and after.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// The findings so far.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Keeps only some findings.
    pub fn retain(&mut self, keep: impl Fn(&Diagnostic) -> bool) {
        self.diagnostics.retain(|d| keep(d));
        self.errors = self.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    }

    /// Changes findings in place; their severity must stay.
    pub fn for_each(&mut self, change: impl FnMut(&mut Diagnostic)) {
        self.diagnostics.iter_mut().for_each(change);
    }

    /// Moves all findings of another sink into this one.
    pub fn append(&mut self, other: Self) {
        self.errors += other.errors;
        self.diagnostics.extend(other.diagnostics);
    }

    /// The findings, in the order in which they were found.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// Turns paths of one document into spans.
    ///
    /// A path whose document was never parsed is left as it is; renderers then show no excerpt. A fix with an edit
    /// that the file has no place for is left out.
    pub fn locate(&mut self, id: DocumentId, document: &Document, sources: &Sources) {
        for diagnostic in &mut self.diagnostics {
            diagnostic.labels.iter_mut().for_each(|label| settle(&mut label.place, id, document, sources));
            diagnostic.fixes.retain_mut(|fix| {
                // The rest of a fix is written into an existing map.
                let more = fix.edits.iter().skip(1).filter(|edit| !edit.text.is_empty());
                let in_maps = more.into_iter().all(|edit| match &edit.place {
                    Location::Entry { document: of, pointer } if *of == id => {
                        pointer.parent().is_some_and(|parent| document.at(&parent).is_some())
                    }
                    _ => true,
                });
                let all = in_maps
                    && fix.edits.iter_mut().all(|edit| settle_edit(edit, id, document, sources).is_some());
                fix.edits.sort_by_key(|edit| edit.place.span().map(|span| span.start));
                all
            });
        }
    }

    /// The findings in the order of the files, without doubles: one about the same place for several targets is one, with
    /// all their places.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        let key = |d: &Diagnostic| {
            d.labels.first().and_then(|l| l.place.span()).map_or((SourceId(0), 0), |s| (s.source, s.start))
        };
        self.diagnostics.sort_by_key(key);
        let mut seen: Vec<Diagnostic> = Vec::with_capacity(self.diagnostics.len());
        for diagnostic in self.diagnostics {
            let same = |d: &&mut Diagnostic| {
                d.code == diagnostic.code
                    && d.message == diagnostic.message
                    && d.labels.first() == diagnostic.labels.first()
                    && d.notes == diagnostic.notes
            };
            match seen.iter_mut().rev().take(64).find(same) {
                Some(first) => {
                    for label in diagnostic.labels {
                        if !first.labels.contains(&label) {
                            first.labels.push(label);
                        }
                    }
                }
                None => seen.push(diagnostic),
            }
        }
        seen
    }
}

/// Finds the bytes of a place, if it is one of that document.
fn settle(place: &mut Location, id: DocumentId, document: &Document, sources: &Sources) {
    *place = Location::Span(match place {
        Location::Path { document: of, pointer, part } if *of == id => document.span_of_cause(pointer, *part),
        Location::Inside { pointer, text, start, end } if id == DocumentId::Job => document
            .span_inside(sources, pointer, text, *start..*end)
            .unwrap_or_else(|| document.span(pointer, Part::Value)),
        _ => return,
    });
}

/// Finds the bytes of an edit; nothing where the document has no place for it.
fn settle_edit(edit: &mut Edit, id: DocumentId, document: &Document, sources: &Sources) -> Option<()> {
    let in_part = matches!(
        edit.place,
        Location::Inside { .. } | Location::Words { .. } | Location::Moved { .. } | Location::Shaped { .. }
    );
    match &edit.place {
        // A text that the file does not have letter by letter cannot be edited in part.
        Location::Inside { pointer, text, start, end } if id == DocumentId::Job => {
            edit.place = Location::Span(document.span_inside(sources, pointer, text, *start..*end)?);
        }
        Location::Path { document: of, pointer, part: Part::Key }
            if *of == id && !edit.text.starts_with('"') =>
        {
            let (span, name) = (document.span(pointer, Part::Key), document.name_at(pointer));
            edit.place = Location::Span(name.map_or(span, |name| unquoted(span, &name)));
        }
        Location::Entry { document: of, pointer } if *of == id && edit.text.is_empty() => {
            edit.place = Location::Span(edit::removal(document, sources, pointer)?);
        }
        Location::Entry { document: of, pointer } if *of == id => {
            let value = serde_json::from_str(&edit.text).ok()?;
            let (span, text) = edit::entry(document, sources, pointer, &value)?;
            (edit.place, edit.text) = (Location::Span(span), text);
        }
        Location::Moved { document: of, from, to } if *of == id => {
            let value = if edit.text.is_empty() { None } else { serde_json::from_str(&edit.text).ok()? };
            let (span, text) = edit::moved(document, sources, from, to, value.as_ref())?;
            (edit.place, edit.text) = (Location::Span(span), text);
        }
        Location::Shaped { document: of, pointer, shape } if *of == id => {
            let (span, text) = edit::reshaped(document, sources, pointer, shape)?;
            (edit.place, edit.text) = (Location::Span(span), text);
        }
        Location::Words { pointer, words } if id == DocumentId::Job => {
            let (span, text) = edit::words(document, sources, pointer, (words, &edit.text))?;
            (edit.place, edit.text) = (Location::Span(span), text);
        }
        Location::Path { document: of, pointer, part: Part::Value } if *of == id => {
            let (span, text) = edit::whole(document, sources, pointer, std::mem::take(&mut edit.text));
            (edit.place, edit.text) = (Location::Span(span), text);
        }
        _ => settle(&mut edit.place, id, document, sources),
    }
    if !in_part
        && let Location::Span(span) = &edit.place
        && let Some(text) = edit::as_json(document, sources, *span, &edit.text)
    {
        edit.text = text;
    }
    Some(())
}
