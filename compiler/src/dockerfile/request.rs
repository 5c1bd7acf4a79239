//! A Dockerfile with the job's build settings, and where its findings are reported.

use camino::Utf8Path;
use indexmap::IndexMap;
use jobc_dockerfile::{Refusal, Rule};
use jobc_schema::Pointer;

use super::finding::diagnostic;
use crate::diagnostic::{Diagnostic, Location, Severity, Sink};
use crate::files::Files;
use crate::lock::Lock;
use crate::source::{SourceId, Span};

/// A Dockerfile, and how the job builds it.
pub struct Request<'a> {
    /// The file's text as a source.
    pub source: SourceId,
    /// The file's content, which may not be text.
    pub bytes: &'a [u8],
    /// The build context, relative to the job file.
    pub context: &'a Utf8Path,
    /// The stage to build; the last one if `None`.
    pub target: Option<&'a str>,
    /// Build arguments from the job.
    pub args: &'a IndexMap<String, String>,
    /// Where the job file declares the image: `target` and `args` are below it.
    pub declared_at: &'a Pointer,
    /// Files next to the job file.
    pub files: &'a dyn Files,
    /// The digests in `jobc.lock`.
    pub lock: &'a Lock,
}

impl Request<'_> {
    /// Converts a place in the file to a place in the sources.
    pub(super) fn span(&self, range: &std::ops::Range<usize>) -> Span {
        Span::new(self.source, range.start, range.end)
    }

    /// Reports what the parser finds: at its line, or where the job names something that does not exist.
    pub(super) fn push(&self, refusal: &Refusal, severity: Severity, sink: &mut Sink) {
        let found = diagnostic(refusal, severity, self.source, self.bytes);
        let near = |found: Diagnostic, place: Location| match &refusal.near {
            Some(near) => found.write(place, near),
            None => found,
        };
        sink.push(match &refusal.rule {
            Rule::Target => {
                let at = self.declared_at.key("target");
                let written = self.target.unwrap_or_default();
                near(found.at(&at, "to be built"), Location::inside(&at, written, 0..written.len()))
            }
            Rule::Argument(name) => {
                let at = self.declared_at.keys(["args", name]);
                near(found.at_key(&at, "given here"), Location::key(&at))
            }
            _ if found.labels.is_empty() => found.at_span(self.span(&(0..0)), ""),
            _ => found,
        });
    }
}
