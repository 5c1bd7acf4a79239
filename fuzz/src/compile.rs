//! The compiler on arbitrary text.

use camino::Utf8PathBuf;
use jobc_compiler::backend::Losses;
use jobc_compiler::compile::{Request, build as write_files, built_in_targets, plan};
use jobc_compiler::diagnostic::render::{Format, TextStyle, render};
use jobc_compiler::diagnostic::{Location, Severity, Sink};
use jobc_compiler::files::MemoryFiles;
use jobc_compiler::source::{Source, Sources};

/// Runs all passes on a job file and renders the findings.
///
/// # Panics
///
/// A pass panics, a fix lies outside its file, or nothing is written and no error says why.
pub fn build(job: &str, targets: Option<&str>) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", job));
    let targets = targets.map(|text| sources.add(Source::new("targets.yaml", text)));
    let only_targets = match targets {
        Some(_) => Vec::new(),
        None => built_in_targets().map(|(name, _)| name.to_owned()).to_vec(),
    };
    let files = MemoryFiles::default();
    let request = Request {
        targets,
        only_targets,
        losses: Losses::Drop,
        ..Request::new(id, &files, &|_: &str| Utf8PathBuf::from("../../.."))
    };
    let mut sink = Sink::new();
    let planned = plan(&mut sources, &request, &mut sink);
    let outputs = planned.map(|planned| write_files(&sources, planned, &request, &mut sink));
    let findings = sink.finish();
    let is_refused = findings.iter().any(|finding| finding.severity == Severity::Error);
    assert!(is_refused || outputs.is_some(), "neither files nor an error");
    for finding in &findings {
        for edit in finding.fixes.iter().flat_map(|fix| &fix.edits) {
            if let Location::Span(span) = &edit.place {
                let _ = sources.slice(*span);
            }
        }
    }
    for format in [Format::Text, Format::Short, Format::Json] {
        let _ = render(format, &sources, &findings, &TextStyle::default());
    }
}
