//! Validates the response of a plug-in, and converts it to files and findings.

use std::collections::BTreeSet;

use camino::{Utf8Component, Utf8Path};
use jobc_schema::Pointer;
use jobc_schema::exchange::{PluginAnswer, PluginDiagnostic, PluginFile, PluginOrigin};

use super::PluginError;
use crate::backend::{Content, File, FilePart, Origin, PartSource};
use crate::diagnostic::{Diagnostic, Severity, Sink, codes};

/// The maximum number of files of a response.
const MAX_FILES: usize = 10_000;
/// The maximum number of findings of a response.
const MAX_DIAGNOSTICS: usize = 1_000;

/// The files of a response; its diagnostics are reported to the sink.
///
/// # Errors
///
/// Returns how the response violates the contract.
pub(super) fn files(answer: PluginAnswer, sink: &mut Sink) -> Result<Vec<File>, PluginError> {
    if answer.files.len() > MAX_FILES || answer.diagnostics.len() > MAX_DIAGNOSTICS {
        return Err(
            format!("it answers with more than {MAX_FILES} files or {MAX_DIAGNOSTICS} diagnostics").into()
        );
    }
    for diagnostic in &answer.diagnostics {
        sink.push(finding(diagnostic)?);
    }
    let mut seen = BTreeSet::new();
    let mut files = Vec::new();
    for file in answer.files {
        if !seen.insert(file.path.clone()) {
            return Err(format!("it writes `{}` twice", file.path).into());
        }
        files.push(self::file(file)?);
    }
    Ok(files)
}

fn file(file: PluginFile) -> Result<File, PluginError> {
    let PluginFile { path, executable, text, yaml, json, origins } = file;
    check_path(&path)?;
    let content = match (text, yaml, json) {
        (Some(text), None, None) => Content::Text(text),
        (None, Some(value), None) => Content::Yaml(value),
        (None, None, Some(value)) => Content::Json(value),
        _ => return Err(format!("`{path}` must have one of `text`, `yaml` and `json`").into()),
    };
    let is_text = matches!(content, Content::Text(_));
    let mut out = File::new(path.clone(), content);
    out.mode = if executable { 0o755 } else { 0o644 };
    for origin in origins {
        out.origins
            .push(self::origin(origin, is_text).map_err(|why| format!("an origin of `{path}` {why}"))?);
    }
    Ok(out)
}

fn check_path(path: &str) -> Result<(), PluginError> {
    let is_plain = !path.is_empty()
        && path.len() <= 200
        && !path.contains(['\\', '\0', '\n', ':'])
        && !path.split('/').any(|part| part.is_empty() || part == "." || part == "..")
        && Utf8Path::new(path).components().all(|part| matches!(part, Utf8Component::Normal(_)));
    if is_plain {
        return Ok(());
    }
    Err(format!("`{}` is not a relative path of plain names", path.escape_debug()).into())
}

fn origin(origin: PluginOrigin, is_text: bool) -> Result<Origin, PluginError> {
    let part = match (origin.pointer, origin.line) {
        (Some(pointer), None) if !is_text => FilePart::Pointer(parse(&pointer)?),
        (None, Some(line @ 1..)) if is_text => FilePart::Line(line),
        _ => return Err("has neither the `line` of a text nor the `pointer` of a value".into()),
    };
    Ok(Origin { part, from: PartSource::Spec(parse(&origin.spec)?) })
}

/// Parses a JSON Pointer (RFC 6901).
fn parse(text: &str) -> Result<Pointer, PluginError> {
    if !text.is_empty() && !text.starts_with('/') {
        return Err(format!("has `{text}`, which is not a JSON Pointer").into());
    }
    Ok(Pointer::ROOT.keys(Pointer::new(text).segments()))
}

fn finding(found: &PluginDiagnostic) -> Result<Diagnostic, PluginError> {
    let severity = if found.error { Severity::Error } else { Severity::Warning };
    let at = found.at.as_deref().unwrap_or_default();
    let at = parse(at).map_err(|why| format!("a diagnostic {why}"))?;
    let diagnostic = Diagnostic::new(codes::PLUGIN_FINDING, severity, found.message.clone()).at(&at, "");
    Ok(match &found.help {
        Some(help) => diagnostic.note(help.clone()),
        None => diagnostic,
    })
}
