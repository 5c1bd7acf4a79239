//! From a line of a written file to what caused it.

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::why::lines::Lines;
use jobc_compiler::why::source_map::{FILE, Part, SourceMap};
use jobc_compiler::why::{LineCause, causes_of_line, names_of_parameters};
use jobc_schema::Pointer;
use serde_json::{Value, json};

use crate::input::{InputError, absolute, read, shorten};
use crate::origins::sentence::sentence;

use super::file_line::FileLine;

/// A part of a line of a written file, and its origins.
pub(super) struct Cause {
    /// The value, as a JSON Pointer; nothing in a text.
    pointer: Option<Pointer>,
    /// The line, without blanks around it.
    text: String,
    /// The target, by the name of its directory.
    target: String,
    origins: Vec<OriginLine>,
}

/// An origin with its details.
struct OriginLine {
    part: Part,
    /// The job file's path, and the line where the field is.
    source: Option<(Utf8PathBuf, u32, String)>,
    /// The parameters of the field, each with the line that declares it.
    parameters: Vec<(String, u32)>,
}

/// The causes of a line: one for each innermost value on it.
///
/// # Errors
/// A file that the build did not write, or that ends before the line.
pub(super) fn of_line(
    place: &FileLine,
    directory: &Utf8Path,
    map: &SourceMap,
) -> Result<Vec<Cause>, InputError> {
    let file = &place.file;
    let text = read(file)?;
    let path = absolute(file).unwrap_or_else(|_| file.clone());
    let name = path.strip_prefix(directory).map_or(file.as_str(), Utf8Path::as_str);
    let Some(parts) = map.artifacts.get(name) else {
        return Err(InputError(match name {
            "plan.json" | FILE => {
                format!("`{file}` describes the other files; ask about a line of one of them")
            }
            _ => format!("`{file}` is not in `{}`; jobc did not write it", shorten(&directory.join(FILE))),
        }));
    };
    let lines = Lines::new(name, &text);
    let Some(line) = lines.text(place.line) else {
        let count = lines.count();
        return Err(InputError(format!("`{file}` has only {count} lines")));
    };
    let target = directory.file_name().unwrap_or_default().to_owned();
    let cause = |cause: LineCause<'_>| Cause {
        pointer: cause.pointer,
        text: line.to_owned(),
        target: target.clone(),
        origins: cause.parts.into_iter().map(|part| OriginLine::new(part, directory)).collect(),
    };
    Ok(causes_of_line(parts, &lines, place.line).into_iter().map(cause).collect())
}

impl OriginLine {
    fn new(part: &Part, directory: &Utf8Path) -> Self {
        let mut origin = Self { part: part.clone(), source: None, parameters: vec![] };
        let (Some(name), Some(spec), Some([line, _])) = (&part.file, &part.spec, part.start) else {
            return origin;
        };
        // A build is below its job file's directory, or elsewhere by `-o`: then the text of the line is not shown.
        let Some(path) = directory.ancestors().map(|above| above.join(name)).find(|path| path.is_file())
        else {
            return origin;
        };
        let Ok(text) = read(&path) else { return origin };
        let lines = Lines::new(name, &text);
        origin.parameters = parameters(&lines, spec);
        origin.source = Some((shorten(&path), line, lines.text(line).unwrap_or_default().to_owned()));
        origin
    }

    /// The origin in one line.
    fn sentence(&self, target: &str) -> String {
        let path = self.source.as_ref().map(|(path, _, _)| path.as_str());
        sentence(&self.part, path, target)
    }
}

/// The parameters in a field's expressions, each with the line that declares it.
fn parameters(lines: &Lines, spec: &str) -> Vec<(String, u32)> {
    let Some(node) = lines.tree().and_then(|tree| tree.at(&Pointer::new(spec))) else { return vec![] };
    let mut names = names_of_parameters(node.as_str().unwrap_or_default());
    names.dedup();
    let line = |name: &str| lines.line_of(Pointer::ROOT.keys(["params", name]).as_str());
    names.into_iter().filter_map(|name| line(&name).map(|line| (name, line))).collect()
}

/// Maximum number of origins printed for a value; a key may have hundreds below it.
const MAX_ORIGINS: usize = 12;

/// The causes, for people.
pub(super) fn text(causes: &[Cause]) -> String {
    let Some(first) = causes.first() else {
        return "no value is on this line: it is empty, a comment, or ends a value\n".to_owned();
    };
    let mut out = format!("{}\n", first.text);
    for cause in causes {
        if let Some(pointer) = cause.pointer.as_ref().filter(|_| causes.len() > 1) {
            let _ = writeln!(out, "  {}", pointer.as_str());
        }
        let mut sentences: Vec<(String, &OriginLine)> = vec![];
        for origin in &cause.origins {
            let sentence = origin.sentence(&cause.target);
            if sentences.iter().all(|(known, _)| *known != sentence) {
                sentences.push((sentence, origin));
            }
        }
        for (sentence, origin) in sentences.iter().take(MAX_ORIGINS) {
            let _ = writeln!(out, "  from {sentence}");
            if let Some((_, line, text)) = &origin.source {
                let _ = writeln!(out, "    {line} | {text}");
            }
            for (name, line) in &origin.parameters {
                let _ = writeln!(out, "    with the parameter `{name}` of line {line}");
            }
        }
        if let Some(more) = sentences.len().checked_sub(MAX_ORIGINS).filter(|more| *more > 0) {
            let _ = writeln!(out, "  and from {more} more; `--format json` prints all");
        }
        if sentences.is_empty() {
            out += "  from the backend alone: no field, setting or default is recorded for it\n";
        }
    }
    out
}

/// The causes, for programs.
pub(super) fn json(place: &FileLine, causes: &[Cause]) -> Value {
    let origin = |origin: &OriginLine| {
        let part = &origin.part;
        if part.spec.is_some() {
            let file = origin.source.as_ref().map(|(path, _, _)| path.to_string()).or(part.file.clone());
            let parameters: Vec<&str> = origin.parameters.iter().map(|(name, _)| name.as_str()).collect();
            json!({"spec": part.spec, "file": file, "start": part.start, "params": parameters})
        } else if part.target.is_some() {
            json!({"target": part.target})
        } else {
            json!({"default": part.default})
        }
    };
    let cause = |cause: &Cause| {
        let origins: Vec<Value> = cause.origins.iter().map(origin).collect();
        json!({"pointer": cause.pointer.as_ref().map(Pointer::as_str), "origins": origins})
    };
    json!({
        "file": place.file,
        "line": place.line,
        "causes": causes.iter().map(cause).collect::<Vec<_>>(),
    })
}
