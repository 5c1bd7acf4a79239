//! What is wrong, where, and what to write instead: a diagnostic is data, and rendering it is another matter.

pub mod codes;
pub mod render;

use std::ops::Range;

use jobc_schema::Pointer;

use crate::document::{Document, Part};
use crate::source::{SourceId, Span};

pub use codes::Code;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing to do.
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
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong: lower case, no full stop, names in backticks.
    pub message: String,
    /// Where; the first is the primary one.
    pub labels: Vec<Label>,
    /// What else helps: what to write instead, the reason, what is known.
    pub notes: Vec<String>,
    /// Edits that would mend it.
    pub fixes: Vec<Fix>,
}

/// A place and its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// The text of the label; may be empty on the primary label.
    pub text: String,
}

/// A place, as bytes or as a path that [`Sink::locate`] turns into bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
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
}

/// Which document a path is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentId {
    /// The job file.
    #[default]
    Job,
    /// `targets.yaml`.
    Targets,
}

/// An edit that would mend a finding.
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
    pub place: Place,
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
        self.labels.push(Label { place: Place::Span(span), text: text.into() });
        self
    }

    /// Points at the value of a path of the job file.
    #[must_use]
    pub fn at(self, pointer: &Pointer, text: impl Into<String>) -> Self {
        self.at_place(Place::value(pointer), text)
    }

    /// Points at the key of a path of the job file.
    #[must_use]
    pub fn at_key(self, pointer: &Pointer, text: impl Into<String>) -> Self {
        self.at_place(Place::key(pointer), text)
    }

    /// Points at any place.
    #[must_use]
    pub fn at_place(mut self, place: Place, text: impl Into<String>) -> Self {
        self.labels.push(Label { place, text: text.into() });
        self
    }

    /// Gives the sources that it points into other numbers.
    pub fn move_to(&mut self, number: impl Fn(SourceId) -> SourceId) {
        let edits = self.fixes.iter_mut().flat_map(|fix| &mut fix.edits);
        let places = self.labels.iter_mut().map(|label| &mut label.place);
        for place in places.chain(edits.map(|edit| &mut edit.place)) {
            if let Place::Span(span) = place {
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

    /// Adds an edit that would mend it.
    #[must_use]
    pub fn fix(
        mut self,
        message: impl Into<String>,
        place: Place,
        text: impl Into<String>,
        safety: Safety,
    ) -> Self {
        let edits = vec![Edit { place, text: text.into() }];
        self.fixes.push(Fix { message: message.into(), edits, safety });
        self
    }
}

/// What a misspelling is said with.
fn did_you_mean(near: &str) -> String {
    format!("did you mean `{near}`?")
}

impl Diagnostic {
    /// Points at the value of a path of the job file, a misspelling of another text, and offers that one.
    #[must_use]
    pub fn suggest_value(self, pointer: &Pointer, wrong: &str, near: &str) -> Self {
        let inside = Place::inside(pointer, wrong, 0..wrong.len());
        self.at(pointer, did_you_mean(near)).write(inside, near)
    }

    /// The same for the key of a path, or an item of a list.
    #[must_use]
    pub fn meant_key(self, pointer: &Pointer, near: &str) -> Self {
        self.at_key(pointer, did_you_mean(near)).write(Place::key(pointer), near)
    }

    /// Offers another text in a place that is pointed at already: `write \`near\``.
    #[must_use]
    pub fn write(self, place: Place, near: &str) -> Self {
        self.fix(format!("write `{near}`"), place, near, Safety::Unsafe)
    }
}

/// The bytes of a text of the file without the quotes around it, if it has some.
pub fn unquoted(span: Span, text: &str) -> Span {
    let quoted = span.range().len() == text.len() + 2;
    if quoted { Span { start: span.start + 1, end: span.end - 1, ..span } } else { span }
}

impl Place {
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

    /// Whether any error so far leaves nothing to plan; that a file is absent hides neither the plan nor what the
    /// backends find.
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

    /// Turns paths of one document into spans.
    ///
    /// A path whose document was never parsed is left as it is; renderers then show no excerpt.
    pub fn locate(&mut self, id: DocumentId, document: &Document) {
        let settle = |place: &mut Place| {
            *place = Place::Span(match place {
                Place::Path { document: of, pointer, part } if *of == id => document.span(pointer, *part),
                Place::Inside { pointer, text, start, end } if id == DocumentId::Job => document
                    .span_inside(pointer, text, *start..*end)
                    .unwrap_or_else(|| document.span(pointer, Part::Value)),
                _ => return,
            });
        };
        // A text that the file does not have letter by letter cannot be edited in part.
        let editable = |edit: &Edit| match &edit.place {
            Place::Inside { pointer, text, start, end } if id == DocumentId::Job => {
                document.span_inside(pointer, text, *start..*end).is_some()
            }
            _ => true,
        };
        for diagnostic in &mut self.diagnostics {
            diagnostic.labels.iter_mut().for_each(|label| settle(&mut label.place));
            diagnostic.fixes.retain(|fix| fix.edits.iter().all(editable));
            for edit in diagnostic.fixes.iter_mut().flat_map(|fix| &mut fix.edits) {
                let key = match &edit.place {
                    Place::Path { document: of, pointer, part: Part::Key }
                        if *of == id && !edit.text.starts_with('"') =>
                    {
                        document.name_at(pointer)
                    }
                    _ => None,
                };
                settle(&mut edit.place);
                if let (Some(name), Place::Span(span)) = (key, &mut edit.place) {
                    *span = unquoted(*span, &name);
                }
            }
        }
    }

    /// The findings in the order of the files, without doubles.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        let key = |d: &Diagnostic| {
            d.labels.first().and_then(|l| l.place.span()).map_or((SourceId(0), 0), |s| (s.source, s.start))
        };
        self.diagnostics.sort_by_key(key);
        let mut seen: Vec<Diagnostic> = Vec::with_capacity(self.diagnostics.len());
        for diagnostic in self.diagnostics {
            let same = |d: &Diagnostic| {
                d.code == diagnostic.code && d.message == diagnostic.message && d.labels == diagnostic.labels
            };
            if !seen.iter().rev().take(64).any(same) {
                seen.push(diagnostic);
            }
        }
        seen
    }
}
