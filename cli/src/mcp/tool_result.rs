//! From what a command has printed to the result of a tool: bounded, and as JSON where the command prints JSON.

use jobc_process::Finished;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::advice::Reader;
use super::command::{Command, OutputKind};

/// Maximum size of a result, in bytes: a model has to read it.
const MAX_RESULT_BYTES: usize = 256 << 10;
/// Maximum size of a text, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum number of findings.
const MAX_FINDINGS: usize = 100;

/// The result of a command that has ended.
pub(super) fn of(command: &Command, finished: &Finished, reader: Reader) -> CallToolResult {
    let is_success = finished.code.is_some_and(|code| code == 0 || command.success.contains(&code));
    if !is_success {
        return failure(finished, reader);
    }
    let warnings = reader.text(&finished.stderr);
    let value = match command.output {
        OutputKind::Text => return text(&head(&finished.stdout), &warnings),
        OutputKind::Tail => return text(&tail(&finished.stdout), &warnings),
        OutputKind::Findings | OutputKind::Object | OutputKind::Job | OutputKind::Value(_) => {
            match serde_json::from_str::<Value>(&finished.stdout) {
                Ok(value) => value,
                Err(_) => return failure(finished, reader),
            }
        }
    };
    let mut value = value;
    let value = match command.output {
        OutputKind::Job => {
            if let Some(job) = value.as_object_mut() {
                // The tool `plan` has it.
                job.remove("plan");
            }
            json!({ "job": value })
        }
        OutputKind::Findings => first_findings(with_advice(value, reader)),
        OutputKind::Value(key) => json!({ key: value }),
        _ => value,
    };
    let size = value.to_string().len();
    if size > MAX_RESULT_BYTES {
        return error(&format!(
            "the result has {} KiB, and at most {} KiB are returned; choose one target, or a smaller job",
            size >> 10,
            MAX_RESULT_BYTES >> 10
        ));
    }
    CallToolResult::structured(value)
}

/// A failure of the tool, which a model can read and do something about.
pub(super) fn error(message: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message.to_owned())])
}

/// A command prints findings to stdout or stderr, whichever its format says.
fn failure(finished: &Finished, reader: Reader) -> CallToolResult {
    let texts = [finished.stderr.trim_end(), finished.stdout.trim_end()];
    let text = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    let text = reader.text(&text);
    match (text.is_empty(), finished.code) {
        (false, _) => error(&head(&text)),
        (true, Some(code)) => error(&format!("exit code {code}")),
        (true, None) => error("killed by a signal"),
    }
}

/// A text, and the warnings besides it.
fn text(output: &str, warnings: &str) -> CallToolResult {
    let mut content = vec![ContentBlock::text(output.to_owned())];
    if !warnings.trim().is_empty() {
        content.push(ContentBlock::text(head(warnings)));
    }
    CallToolResult::success(content)
}

/// Findings whose notes are for this client.
fn with_advice(mut value: Value, reader: Reader) -> Value {
    let findings = value.get_mut("diagnostics").and_then(Value::as_array_mut);
    for finding in findings.into_iter().flatten() {
        for note in finding.get_mut("notes").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(text) = note.as_str() {
                *note = reader.text(text).into();
            }
        }
    }
    value
}

/// The first findings, and how many were left out.
fn first_findings(mut value: Value) -> Value {
    let mut omitted = 0;
    if let Some(findings) = value.get_mut("diagnostics").and_then(Value::as_array_mut) {
        let size =
            |findings: &[Value]| findings.iter().map(|finding| finding.to_string().len()).sum::<usize>();
        let count = findings.len();
        findings.truncate(MAX_FINDINGS);
        while size(findings) > MAX_RESULT_BYTES / 2 && !findings.is_empty() {
            findings.truncate(findings.len() / 2);
        }
        omitted = count - findings.len();
    }
    value["omitted"] = omitted.into();
    value
}

/// The beginning of a text, in whole lines.
fn head(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(MAX_TEXT_BYTES);
    let end = text[..cut].rfind('\n').map_or(cut, |end| end + 1);
    format!("{}[{} more bytes are left out]\n", &text[..end], text.len() - end)
}

/// The end of a text, in whole lines.
fn tail(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let cut = text.ceil_char_boundary(text.len() - MAX_TEXT_BYTES);
    let start = text[cut..].find('\n').map_or(cut, |at| cut + at + 1);
    format!("[{start} bytes before this are left out]\n{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_line() {
        let line = "é23456789\n";
        let long = line.repeat(20_000);
        for (cut, note) in
            [(head(&long), "more bytes are left out]\n"), (tail(&long), "bytes before this are left out]\n")]
        {
            assert!(cut.len() <= MAX_TEXT_BYTES + 80, "{}", cut.len());
            assert!(cut.contains(note));
            let lines: Vec<&str> = cut.lines().filter(|line| !line.starts_with('[')).collect();
            assert!(lines.len() > 5_000 && lines.iter().all(|line| *line == "é23456789"));
        }
        assert_eq!(head(line), line);
        // One line that is too long is cut inside.
        assert!(head(&"é".repeat(MAX_TEXT_BYTES)).starts_with('é'));
        assert!(tail(&"é".repeat(MAX_TEXT_BYTES)).ends_with('é'));
    }

    #[test]
    fn findings_have_a_maximum_number_and_size() {
        let findings = |count: usize, size: usize| json!({"diagnostics": vec!["x".repeat(size); count]});
        for (count, size) in [(3, 10), (1_000, 10), (100, 10_000), (1, MAX_RESULT_BYTES)] {
            let value = first_findings(findings(count, size));
            let kept = value["diagnostics"].as_array().unwrap().len();
            assert_eq!(kept as u64 + value["omitted"].as_u64().unwrap(), count as u64);
            assert!(kept <= MAX_FINDINGS && value.to_string().len() <= MAX_RESULT_BYTES, "{count} {size}");
            assert_eq!(kept == count, count == 3);
        }
    }
}
