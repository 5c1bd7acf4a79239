//! `jobc build --explain`: the files with the reason for each line.

use std::fmt::Write as _;

use camino::Utf8Path;
use jobc_compiler::compile::Output;
use jobc_compiler::why::source_map::{FILE, Part, SourceMap};
use jobc_compiler::why::{ExplainedLine, explain};

use crate::origins::sentence::sentence;
use crate::origins::tasks::without_index;
use crate::outcome::Outcome;
use crate::terminal;

/// The column of the reasons: most lines of a manifest are shorter, and both fit on a wide terminal.
const COLUMN: usize = 56;

/// Prints the files of the backends; of tasks with the same reasons, such as the bundles of a role, the first.
pub(super) fn print(outputs: &[Output]) -> Outcome {
    for output in outputs {
        let target = &output.job.target.name;
        let map = output.artifacts.iter().find(|artifact| artifact.path == FILE);
        let map = map.and_then(|map| SourceMap::parse(&String::from_utf8_lossy(&map.bytes)).ok());
        let Some(map) = map else { continue };
        let mut shown: Vec<String> = vec![];
        for artifact in &output.artifacts {
            let path = artifact.path.as_str();
            let task = without_index(path);
            let (Some(parts), Ok(text)) = (map.artifacts.get(path), std::str::from_utf8(&artifact.bytes))
            else {
                continue;
            };
            if task != path && shown.contains(&task) {
                continue;
            }
            shown.push(task);
            let whole = Utf8Path::new(&output.job.name).join(target).join(path);
            terminal::print(&format!("==> {whole} <==\n{}", file(parts, path, text, target)));
        }
    }
    Outcome::Success
}

/// A file, in which each reason is beside the first of the lines that have it.
fn file(parts: &[Part], path: &str, text: &str, target: &str) -> String {
    let mark = if Utf8Path::new(path).extension() == Some("json") { "//" } else { "#" };
    let mut out = String::new();
    let mut last = String::new();
    for line in explain(parts, path, text) {
        let why = reason(&line, target);
        if why.is_empty() || why == last {
            let _ = writeln!(out, "{}", line.text);
        } else {
            let _ = writeln!(out, "{:COLUMN$}  {mark} {why}", line.text);
        }
        last = why;
    }
    out
}

fn reason(line: &ExplainedLine<'_>, target: &str) -> String {
    let mut found: Vec<String> = vec![];
    for part in &line.reasons {
        let sentence = sentence(part, None, target);
        if !found.contains(&sentence) {
            found.push(sentence);
        }
    }
    found.join("; ")
}
