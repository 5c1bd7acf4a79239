//! Pass 1: text to [`Document`], with a span for every key and every value.
//!
//! YAML is read as 1.2 with the core schema: one document, string keys, no merge keys, no custom tags, anchors and
//! aliases up to a limit. JSON may contain `//` and `/* */` comments. Errors are reported and, if the rest of the
//! text can still be parsed, the pass continues, so that one run reports all of them.

mod json;
mod keys;
mod limits;
mod patch;
mod recover;
mod report;
mod scalar;
mod yaml;

use jobc_schema::shell::quote;

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::Document;
use crate::source::{Source, SourceId, Sources};

use report::Report;

pub use limits::{MAX_ALIAS_NODES, MAX_ALIAS_TEXT, MAX_BYTES, MAX_DEPTH};
pub use patch::{Change, patch};
pub use recover::{Recovered, recover};

/// Parses one source into a document.
///
/// A `.json` or `.jsonc` file is JSON, a `.yaml` or `.yml` file YAML; any other text is JSON if it begins like
/// JSON. The result is `None` if no tree could be made; findings may have been reported even if it is `Some`.
pub fn parse(sources: &Sources, id: SourceId, sink: &mut Sink) -> Option<Document> {
    let source = sources.get(id);
    let mut report = Report::new(id, sink);
    let document = readable(source.text(), &mut report)
        .filter(|text| {
            !report_batch_script(source, text, &mut report) && !report_docker(source, text, &mut report)
        })
        .and_then(|text| read(source, text, &mut report));
    report.finish();
    document
}

/// Reports what no job file may contain, of any format: too much text, and control characters.
pub fn is_readable(sources: &Sources, id: SourceId, sink: &mut Sink) -> bool {
    let mut report = Report::new(id, sink);
    let is_readable = readable(sources.get(id).text(), &mut report).is_some();
    report.finish();
    is_readable
}

/// What can be read of a job in YAML whose text has syntax errors; `None` for other texts.
pub fn readable_part(sources: &Sources, id: SourceId) -> Option<Recovered> {
    let source = sources.get(id);
    let extension = source.path().extension().unwrap_or_default().to_ascii_lowercase();
    let is_json = matches!(extension.as_str(), "json" | "jsonc") || begins_like_json(source.text());
    // Which lines belong together is not known then.
    let is_odd = |line: &str| {
        let content = line.trim_start_matches(' ');
        content.starts_with(char::is_whitespace) && !content.trim().is_empty()
    };
    if is_json || source.text().len() > MAX_BYTES || source.text().lines().any(is_odd) {
        return None;
    }
    recover(source.text()).filter(|found| found.document.root.get("roles").is_some())
}

fn read(source: &Source, text: &str, report: &mut Report<'_>) -> Option<Document> {
    let extension = source.path().extension().unwrap_or_default().to_ascii_lowercase();
    let root = match extension.as_str() {
        "json" | "jsonc" => json::load(text, report),
        "yaml" | "yml" => yaml(text, report),
        _ if begins_like_json(text) => json::load(text, report),
        _ => yaml(text, report),
    };
    root.map(|root| Document { root })
}

/// Parses YAML, or JSON in a file named like YAML.
///
/// JSON without comments is valid YAML. With comments it is not, and the author of `{"jobName": …} // why` in a `.yaml`
/// file needs messages about JSON, not about YAML's flow maps.
fn yaml(text: &str, report: &mut Report<'_>) -> Option<crate::document::Node> {
    if !begins_like_json(text) {
        return yaml::load(text, report);
    }
    let mut attempt = Sink::new();
    let mut aside = Report::new(report.source(), &mut attempt);
    let root = yaml::load(text, &mut aside);
    aside.finish();
    // `// note "key":1` is a valid plain key in a flow map, so a text with comments is never YAML here.
    if attempt.has_errors() || json::is_not_yaml(text) {
        return json::load(text, report);
    }
    report.append(attempt);
    root
}

/// Whether a text begins with a quoted key in braces, a JSON list, or a JSON comment.
fn begins_like_json(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with("//") || text.starts_with("/*") {
        return true;
    }
    match text.strip_prefix('{').or_else(|| text.strip_prefix('[')) {
        Some(rest) => {
            let rest = rest.trim_start();
            rest.starts_with('"')
                || rest.starts_with("//")
                || rest.starts_with("/*")
                || rest.starts_with("{\"")
        }
        None => false,
    }
}

/// Reports what neither format may contain: too much text, and control characters.
fn readable<'t>(text: &'t str, report: &mut Report<'_>) -> Option<&'t str> {
    if text.len() > MAX_BYTES {
        let message = format!(
            "the file is larger than {} MiB: split the job, or generate less of it",
            MAX_BYTES / (1024 * 1024)
        );
        report.push(Diagnostic::error(codes::LIMIT, message).at_span(report.span(0, 0), ""));
        return None;
    }
    let control = |b: u8| (b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r')) || b == 0x7f;
    if let Some(at) = text.bytes().position(control) {
        let byte = text.as_bytes()[at];
        let message = format!("invalid control character U+{byte:04X}: remove it");
        report.push(
            Diagnostic::error(codes::SYNTAX, message).at_span(report.span(at, at + 1), "here").note(
                "inside double quotes write a control character as an escape, such as `\\e` or `\\x1b`",
            ),
        );
        return None;
    }
    Some(text)
}

/// Reports a script, whose lines are not YAML: of Slurm, of another batch system, or of a shell; returns whether it is one.
fn report_batch_script(source: &Source, text: &str, report: &mut Report<'_>) -> bool {
    const OPTIONS: [(&str, &str, &str); 3] = [
        (
            "#SBATCH",
            "a batch script of Slurm",
            "`jobc import` rewrites it as a job file; `jobc check`, `jobc build` and `jobc run` take it as it is",
        ),
        ("#PBS", "a batch script of PBS", OTHER_BATCH),
        ("#BSUB", "a batch script of LSF", OTHER_BATCH),
    ];
    const OTHER_BATCH: &str = "in a job file the commands are `run` of a role, nodes are `instances`, GPUs are `resources: {gpu: 8}` and the time limit is `timeout`";
    const INTERPRETERS: [&str; 6] = ["sh", "bash", "zsh", "python", "python3", "perl"];
    let body = text.trim_start_matches('\u{feff}');
    let Some(first) = body.lines().next().filter(|line| line.starts_with("#!")) else { return false };
    let program = first.split([' ', '/']).rfind(|word| INTERPRETERS.contains(word));
    let of_system = OPTIONS.iter().find_map(|(option, what, note)| {
        Some((text.find(&format!("\n{option}"))? + 1, option.len(), *what, *note))
    });
    let script = program.map(|_| {
        (text.len() - body.len(), first.len(), "a script", "in a job file its commands are `run` of a role")
    });
    let Some((at, length, what, note)) = of_system.or(script) else { return false };
    let (program, script) = (program.unwrap_or("bash"), quote(source.path().as_str()));
    let writes = if what.ends_with("Slurm") { ", and `jobc build` its batch script" } else { "" };
    report.push(
        Diagnostic::error(codes::FOREIGN_FILE, format!("the file is {what}, not a job file"))
            .at_span(report.span(at, at + length), "")
            .note(note)
            .note(format!("`jobc init` writes a first job file{writes}; `jobc run -- {program} {script}` runs this one on this host")),
    );
    true
}

/// Reports a Dockerfile and a command line of `docker run`, each of which YAML takes for one text; returns whether it is one.
fn report_docker(source: &Source, text: &str, report: &mut Report<'_>) -> bool {
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let Some(line) = text.lines().find(is_content) else { return false };
    let words: Vec<&str> = line.split_whitespace().take(3).collect();
    let file = source.path();
    let (what, notes) = match words[..] {
        ["docker" | "podman", "run", ..] => (
            "a command line, not a job file",
            ["`jobc import` rewrites it as a job file; `jobc check`, `jobc build` and `jobc run` take it as it is".to_owned(),
             "`jobc run --image IMAGE -- COMMAND` takes the same options".to_owned()],
        ),
        ["FROM", _, ..] if !line.contains(':') || text.lines().filter(is_content).nth(1).is_some_and(is_instruction) => (
            "a Dockerfile, not a job file",
            [format!("in a job file `image: {{dockerfile: {file}}}` builds it, and `roles` has the commands"),
             "`jobc init` writes a first job file".to_owned()],
        ),
        _ => return false,
    };
    let at = line.as_ptr() as usize - text.as_ptr() as usize;
    let mut found = Diagnostic::error(codes::FOREIGN_FILE, format!("the file is {what}"))
        .at_span(report.span(at, at + line.len()), "");
    for note in notes {
        found = found.note(note);
    }
    report.push(found);
    true
}

/// Whether a line begins with an instruction of a Dockerfile.
fn is_instruction(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    matches!(
        word,
        "FROM"
            | "RUN"
            | "COPY"
            | "ADD"
            | "ENV"
            | "WORKDIR"
            | "CMD"
            | "ENTRYPOINT"
            | "ARG"
            | "USER"
            | "EXPOSE"
            | "LABEL"
    )
}

#[cfg(test)]
mod tests;
