//! The header of a Slurm job's scripts, each line as a comment beside the line of the job that it comes from.

use std::fmt::Write as _;

use jobc_compiler::compile::Output;
use jobc_compiler::source::Source;
use jobc_compiler::why::source_map::{FILE, Part, SourceMap, dotted};

/// Maximum length of a line of the job that is shown, in characters.
const MAX_TEXT: usize = 60;

/// The headers of all batch scripts of a job; empty if it has none. `job` is the job file.
pub(super) fn of_output(output: &Output, job: &Source) -> String {
    let text = |path: &str| {
        let artifact = output.artifacts.iter().find(|artifact| artifact.path == path)?;
        Some(String::from_utf8_lossy(&artifact.bytes).into_owned())
    };
    let map = text(FILE).and_then(|text| SourceMap::parse(&text).ok());
    let mut out = String::new();
    for (path, parts) in map.iter().flat_map(|map| &map.artifacts) {
        if !path.starts_with("slurm/") || !path.ends_with(".sbatch") {
            continue;
        }
        let script = text(path).unwrap_or_default();
        let lines: Vec<(u32, &str)> =
            (1..).zip(script.lines()).take_while(|(_, line)| line.starts_with('#')).collect();
        let lines: Vec<(&str, String)> = lines
            .into_iter()
            .filter(|(_, line)| line.starts_with("#SBATCH "))
            .map(|(number, line)| {
                let part = parts.iter().find(|part| part.line == Some(number));
                (line, part.map(|part| origin(part, job)).unwrap_or_default())
            })
            .collect();
        let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or_default();
        let _ = writeln!(out, "\n{path}");
        for (line, origin) in lines {
            let _ = writeln!(out, "{}", format!("  {line:width$}  {origin}").trim_end());
        }
    }
    out
}

/// Where a line comes from: a line of the job file with its text, a setting of the target, or a default.
fn origin(part: &Part, job: &Source) -> String {
    if let Some(setting) = &part.target {
        return format!("target: {}", dotted(setting));
    }
    if let Some(default) = &part.default {
        return default.clone();
    }
    let (Some(file), Some([line, _])) = (&part.file, part.start) else { return String::new() };
    let text = job.text().lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim();
    let text = if text.chars().count() > MAX_TEXT {
        format!("{}...", text.chars().take(MAX_TEXT - 3).collect::<String>())
    } else {
        text.to_owned()
    };
    format!("{file}:{line}: {text}").trim_end_matches([':', ' ']).to_owned()
}
