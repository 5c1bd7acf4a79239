//! The compiler's findings as diagnostics of the protocol, with the same messages and locations.

use std::collections::BTreeMap;

use jobc_compiler::diagnostic::{self as jobc, Code, Edit, Label, Severity, codes};
use jobc_compiler::source::{SourceId, Sources, Span};
use lsp_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location,
    Range, Uri,
};

use crate::analysis::Analysis;
use crate::client::Client;
use crate::text::Text;

/// Findings about unused declarations, which editors fade.
const UNUSED: [Code; 6] = [
    codes::UNUSED_PARAM,
    codes::UNUSED_SECRET,
    codes::UNUSED_IMAGE,
    codes::UNUSED_DATA,
    codes::UNUSED_REGISTRY,
    codes::UNUSED_ARG,
];

/// The diagnostics of a job or a targets file, by URI.
pub(crate) fn of_analysis(
    analysis: &Analysis,
    job: &Uri,
    client: &Client,
) -> BTreeMap<String, Vec<Diagnostic>> {
    if analysis.findings.is_empty() {
        return BTreeMap::new();
    }
    let places = Places::of(analysis, job, client);
    places.all(&analysis.findings, job)
}

/// The sources of a compilation, with the client's URIs.
pub(crate) struct Places<'a> {
    sources: &'a Sources,
    client: &'a Client,
    texts: BTreeMap<SourceId, (Uri, Text)>,
}

impl<'a> Places<'a> {
    /// The sources of a compiled job or targets file.
    pub(crate) fn of(analysis: &'a Analysis, job: &Uri, client: &'a Client) -> Self {
        Self::new(&analysis.sources, client, |id| analysis.uri(id, job))
    }

    pub(crate) fn new(
        sources: &'a Sources,
        client: &'a Client,
        uri: impl Fn(SourceId) -> Option<Uri>,
    ) -> Self {
        let text = |id: SourceId| Text::new(sources.get(id).text().to_owned(), client.encoding);
        let texts = sources.iter().filter_map(|(id, _)| Some((id, (uri(id)?, text(id))))).collect();
        Self { sources, client, texts }
    }

    fn all(&self, findings: &[jobc::Diagnostic], job: &Uri) -> BTreeMap<String, Vec<Diagnostic>> {
        let mut by_uri: BTreeMap<String, Vec<Diagnostic>> = BTreeMap::new();
        for finding in findings {
            let (uri, diagnostic) = self.diagnostic(finding, job);
            by_uri.entry(uri.0).or_default().push(diagnostic);
        }
        by_uri
    }

    /// One finding and its URI; at the start of the job if it has no location.
    pub(crate) fn diagnostic(&self, finding: &jobc::Diagnostic, job: &Uri) -> (Uri, Diagnostic) {
        let primary =
            finding.labels.first().and_then(|label| label.place.span()).and_then(|span| self.location(span));
        let primary = primary.unwrap_or_else(|| Location { uri: job.clone(), range: Range::default() });
        let mut message = finding.message.clone();
        let related = self.related(finding, &primary);
        let related = if self.client.related_information {
            Some(related).filter(|related| !related.is_empty())
        } else {
            // There is no other field for the suggestion.
            message.extend(finding.notes.iter().map(|note| format!("\n{note}")));
            None
        };
        let code = finding.code.as_str();
        // `jobc explain` prints the same page.
        let site = self.client.site.filter(|_| self.client.code_description);
        let description = site.map(|site| CodeDescription { href: site.code(code).into() });
        let diagnostic = Diagnostic {
            range: primary.range,
            severity: Some(match finding.severity {
                Severity::Error => DiagnosticSeverity::Error,
                Severity::Warning => DiagnosticSeverity::Warning,
                Severity::Note => DiagnosticSeverity::Information,
            }),
            code: Some(code.to_owned().into()),
            code_description: description,
            source: Some("jobc".to_owned()),
            message: message.into(),
            tags: UNUSED.contains(&finding.code).then(|| vec![DiagnosticTag::Unnecessary]),
            related_information: related,
            data: None,
        };
        (primary.uri, diagnostic)
    }

    /// The texts of all labels, and the notes, which are shown at the finding itself.
    fn related(&self, finding: &jobc::Diagnostic, primary: &Location) -> Vec<DiagnosticRelatedInformation> {
        let mut all = vec![];
        for (nth, Label { place, text }) in finding.labels.iter().enumerate() {
            let Some(location) = place.span().and_then(|span| self.location(span)) else { continue };
            let same = nth > 0 && location == *primary;
            if (nth > 0 || !text.is_empty()) && !(same && text.is_empty()) {
                let message = if text.is_empty() { "here" } else { text };
                all.push(DiagnosticRelatedInformation { location, message: message.to_owned() });
            }
        }
        let note =
            |text: &String| DiagnosticRelatedInformation { location: primary.clone(), message: text.clone() };
        all.extend(finding.notes.iter().map(note));
        all
    }

    /// The location of a span; for a built-in template, the `uses` that includes it.
    pub(crate) fn location(&self, span: Span) -> Option<Location> {
        if let Some((uri, text)) = self.texts.get(&span.source) {
            return Some(Location { uri: uri.clone(), range: text.range(span.range()) });
        }
        self.sources.get(span.source).uses().and_then(|uses| self.location(uses))
    }

    /// The edits of a fix, if all of them are in files with URIs.
    pub(crate) fn edits(&self, edits: &[Edit]) -> Option<Vec<(Uri, lsp_types::TextEdit)>> {
        let edit = |edit: &Edit| {
            let (uri, text) = self.texts.get(&edit.place.span()?.source)?;
            let range = text.range(edit.place.span()?.range());
            Some((uri.clone(), lsp_types::TextEdit { range, new_text: edit.text.clone() }))
        };
        edits.iter().map(edit).collect()
    }
}
