//! A failed instruction of a generated Dockerfile, as a finding at the field of the job file that causes it.

mod advice;

use jobc_schema::Pointer;

use super::causes::causes_of_line;
use super::lines::Lines;
use super::source_map::{Part, SourceMap, dotted};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::parse::parse;
use crate::source::{LineColumn, Source, SourceId, Sources, Span};

use advice::advice;

/// An instruction of a generated Dockerfile that failed.
#[derive(Clone, Copy, Debug)]
pub struct FailedStep<'a> {
    /// The path of the Dockerfile in the directory of the target.
    pub path: &'a str,
    /// The text of the Dockerfile.
    pub text: &'a str,
    /// The line of the instruction, from 1.
    pub line: u32,
    /// The error.
    pub message: &'a str,
    /// The builder's own advice.
    pub help: Option<&'a str>,
    /// The last lines that the command has written.
    pub output: &'a str,
}

impl FailedStep<'_> {
    /// The finding; nothing if no field of the job file causes the instruction.
    ///
    /// The excerpt is left out where `sources` lacks the file that the source map names.
    pub fn finding(&self, map: &SourceMap, sources: &Sources) -> Option<Diagnostic> {
        let parts = map.artifacts.get(self.path)?;
        let causes = causes_of_line(parts, &Lines::new(self.path, self.text), self.line);
        let part = causes.iter().flat_map(|cause| &cause.parts).find(|part| part.spec.is_some())?;
        let spec = Pointer::new(part.spec.as_deref()?);
        let place = excerpt(part, sources);
        let step = place.and_then(|(source, span)| step(&spec, source, span.source));
        let (field, place) = match (step, place) {
            (Some((step, span)), Some((source, _))) => (dotted(step.as_str()), Some((source, span))),
            (_, place) => (dotted(spec.as_str()), place),
        };
        let is_python = spec.as_str().ends_with("/python")
            || place.is_some_and(|(source, span)| source.slice(span).starts_with("python:"));
        let advice = advice(self.output, field.contains(".steps."), is_python);
        let mut finding = Diagnostic::error(codes::BUILD_STEP_FAILED, format!("`{field}`: {}", self.message));
        if let Some((source, span)) = place {
            let item = advice.package.and_then(|package| inside(source, span, package));
            finding = finding.at_span(item.unwrap_or_else(|| first_line(source, span)), "");
        } else {
            let [line, column] = part.start?;
            finding = finding.note(format!("caused by {}:{line}:{column}", part.file.as_deref()?));
        }
        finding = finding.note(format!("the instruction is at {}:{}", self.path, self.line));
        let notes = advice.notes.into_iter().chain(self.help.map(str::to_owned));
        Some(notes.fold(finding, Diagnostic::note))
    }
}

/// The place of a part, if its file is among the sources.
fn excerpt<'a>(part: &Part, sources: &'a Sources) -> Option<(&'a Source, Span)> {
    let named = |(_, source): &(SourceId, &Source)| source.path().file_name() == part.file.as_deref();
    sources.iter().filter(named).find_map(|(id, source)| {
        let offset = |[line, column]: [u32; 2]| source.offset(LineColumn { line, column });
        let (start, end) = (offset(part.start?)?, offset(part.end?)?);
        Some((source, Span { source: id, start, end }))
    })
}

/// The step of `steps` that a field stands for: steps in the usual order are planned like fields.
fn step(field: &Pointer, source: &Source, id: SourceId) -> Option<(Pointer, Span)> {
    let mut sources = Sources::new();
    let own = sources.add(source.clone());
    let document = parse(&sources, own, &mut Sink::new())?;
    if document.at(field).is_some() {
        return None;
    }
    let mut segments: Vec<String> = field.segments().collect();
    let number = segments.last()?.parse::<usize>().ok();
    if number.is_some() {
        segments.pop();
    }
    let key = segments.pop()?;
    let steps = Pointer::ROOT.keys(&segments).key("steps");
    let items = document.at(&steps)?.items();
    let mut wanted = items.iter().enumerate().filter(|(_, step)| step.get(&key).is_some());
    let (index, step) = wanted.nth(number.unwrap_or_default())?;
    Some((steps.index(index), Span { source: id, ..step.span }))
}

/// The first line of a place: an excerpt of a whole block hides the message.
fn first_line(source: &Source, span: Span) -> Span {
    let line = source.slice(span).lines().next().unwrap_or_default().trim_end();
    Span::new(span.source, span.start as usize, span.start as usize + line.len())
}

/// The place of a package in a list.
fn inside(source: &Source, span: Span, package: &str) -> Option<Span> {
    let text = source.slice(span);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let (at, _) = text.match_indices(package).find(|(at, _)| {
        let (before, after) = (&text[..*at], &text[at + package.len()..]);
        !before.ends_with(is_name) && !after.starts_with(is_name)
    })?;
    let start = span.start as usize + at;
    Some(Span::new(span.source, start, start + package.len()))
}

#[cfg(test)]
mod tests;
