//! Text for people: excerpts with marks, notes, and fixes as differences.

use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Patch, Renderer, Snippet};

use super::region::{region, unlocated};
use crate::diagnostic::{Diagnostic, Fix, Label, Severity};
use crate::source::{Source, SourceId, Sources};

/// Fixes shown for one finding; more would bury it.
const FIXES: usize = 3;

/// How text for people looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    /// Whether to color it with ANSI escapes.
    pub color: bool,
    /// Whether frames may use box-drawing characters.
    pub unicode: bool,
    /// Columns of the terminal; longer source lines are cut round the mark.
    pub width: usize,
}

impl Default for TextStyle {
    fn default() -> Self {
        Self { color: false, unicode: false, width: 140 }
    }
}

pub(super) fn render(sources: &Sources, diagnostics: &[Diagnostic], style: TextStyle) -> String {
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    let decor = if style.unicode { DecorStyle::Unicode } else { DecorStyle::Ascii };
    let renderer = renderer.decor_style(decor).term_width(style.width);
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&renderer.render(&report(sources, diagnostic, style.width)));
        out.push_str("\n\n");
    }
    if let Some(first) = diagnostics.iter().max_by_key(|d| (d.severity, std::cmp::Reverse(d.code))) {
        let what = match first.severity {
            Severity::Error => "an error",
            Severity::Warning => "a warning",
            Severity::Note => "a note",
        };
        let _ = writeln!(out, "for more about {what}, run `jobc explain {}`", first.code);
    }
    out
}

/// The finding itself, then one group for each fix.
fn report<'a>(sources: &'a Sources, diagnostic: &'a Diagnostic, width: usize) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    // Severity, code and message.
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code.as_str());
    let mut group = Group::with_title(title).elements(excerpts(sources, &diagnostic.labels));
    for label in &diagnostic.labels {
        if let Some(path) = unlocated(&label.place) {
            let colon = if label.text.is_empty() { "" } else { ": " };
            group = group.element(Level::NOTE.message(format!("at `{path}`{colon}{}", label.text)));
        }
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note));
    }
    let mut groups = vec![group];
    for fix in diagnostic.fixes.iter().take(FIXES) {
        groups.push(difference(sources, fix, width));
    }
    groups
}

/// One excerpt for each file that labels point into, the primary label's file first.
fn excerpts<'a>(sources: &'a Sources, labels: &'a [Label]) -> Vec<Element<'a>> {
    let mut files: Vec<SourceId> = vec![];
    for span in labels.iter().filter_map(|label| label.place.span()) {
        if !files.contains(&span.source) {
            files.push(span.source);
        }
    }
    let excerpt = |file: SourceId| {
        let of_file = |label: &&'a Label| label.place.span().is_some_and(|span| span.source == file);
        let regions = labels.iter().filter(of_file).filter_map(|label| region(sources, &label.place));
        let ranges: Vec<Range<usize>> = regions.map(|at| at.span.range()).collect();
        let source = sources.get(file);
        let window = Window::new(source, &ranges);
        let marks = labels.iter().enumerate().filter(|(_, label)| of_file(label)).zip(&ranges);
        let marks = marks.map(|((n, label), range)| {
            let kind = if n == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let mark = kind.span(window.inside(range));
            if label.text.is_empty() { mark } else { mark.label(label.text.as_str()) }
        });
        Element::from(window.snippet::<Annotation<'a>>(source).annotations(marks))
    };
    files.into_iter().map(excerpt).collect()
}

/// A fix as a difference; in words alone where its place is not known, or its lines are too long to be read.
fn difference<'a>(sources: &'a Sources, fix: &'a Fix, width: usize) -> Group<'a> {
    let title = Level::HELP.secondary_title(&fix.message);
    let regions: Option<Vec<_>> = fix.edits.iter().map(|edit| region(sources, &edit.place)).collect();
    let Some(source) = regions.as_ref().and_then(|r| r.first()).map(|at| at.source) else {
        return Group::with_title(title);
    };
    let ranges: Vec<Range<usize>> = regions.unwrap_or_default().iter().map(|at| at.span.range()).collect();
    let window = Window::new(source, &ranges);
    // The renderer cuts excerpts at the width, but not differences.
    if source.text()[window.start..window.end].lines().any(|line| line.chars().count() > 2 * width) {
        return Group::with_title(title);
    }
    let patches = fix.edits.iter().zip(&ranges);
    let patches = patches.map(|(edit, range)| {
        // The renderer has no line after the last line break: what is added there is added before it.
        let end = source.text().len();
        let is_last = *range == (end..end) && source.text().ends_with('\n') && !edit.text.is_empty();
        let is_free = !ranges.iter().any(|other| other != range && other.contains(&(end - 1)));
        match edit.text.strip_suffix('\n').filter(|_| is_last && is_free) {
            Some(text) => Patch::new(window.inside(&(end - 1..end - 1)), format!("\n{text}")),
            None => Patch::new(window.inside(range), edit.text.as_str()),
        }
    });
    Group::with_title(title).element(window.snippet::<Patch<'a>>(source).patches(patches))
}

/// The lines to render: the renderer would otherwise read the whole file for each finding.
struct Window {
    start: usize,
    end: usize,
    /// Number of the first line.
    line: usize,
}

impl Window {
    fn new(source: &Source, ranges: &[Range<usize>]) -> Self {
        let text = source.text();
        let first = ranges.iter().map(|range| range.start).min().unwrap_or_default();
        let last = ranges.iter().map(|range| range.end).max().unwrap_or_default();
        let start = text[..first].rfind('\n').map_or(0, |n| n + 1);
        let end = text[last..].find('\n').map_or(text.len(), |n| last + n);
        let offset = u32::try_from(first).unwrap_or(u32::MAX);
        Self { start, end, line: source.line_column(offset).line as usize }
    }

    fn inside(&self, range: &Range<usize>) -> Range<usize> {
        range.start - self.start..range.end - self.start
    }

    fn snippet<'a, T: Clone>(&self, source: &'a Source) -> Snippet<'a, T> {
        let text = &source.text()[self.start..self.end];
        Snippet::source(text).line_start(self.line).path(source.path().as_str())
    }
}
