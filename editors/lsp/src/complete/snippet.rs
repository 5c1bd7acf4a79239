//! Snippet syntax: tab stops, and blocks of the schema as YAML.

use serde_json::Value;

/// A text as a snippet that inserts exactly this text.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}")
}

/// A snippet as plain text, for a client without snippets: default texts and first choices are kept.
pub(super) fn plain(snippet: &str) -> String {
    let mut out = String::new();
    let mut rest = snippet;
    while let Some(at) = rest.find(['$', '\\']) {
        out.push_str(&rest[..at]);
        let mark = &rest[at..];
        if let Some(escaped) = mark.strip_prefix('\\') {
            let length = escaped.chars().next().map_or(0, char::len_utf8);
            out.push_str(&escaped[..length]);
            rest = &escaped[length..];
        } else if let Some(inside) = mark.strip_prefix("${") {
            let end = inside.find('}').unwrap_or(inside.len());
            let stop = &inside[..end];
            let at = stop.find([':', '|']).unwrap_or(stop.len());
            let text = stop.get(at + 1..).unwrap_or_default();
            let is_choice = stop[at..].starts_with('|');
            out.push_str(if is_choice { text.split(['|', ',']).next().unwrap_or_default() } else { text });
            rest = inside.get(end + 1..).unwrap_or_default();
        } else {
            rest = mark[1..].trim_start_matches(|c: char| c.is_ascii_digit());
        }
    }
    out + rest
}

/// A block of the schema as YAML lines, without indentation.
///
/// Its strings contain tab stops; a string that begins with `^` is written without quotes.
pub(super) fn yaml(body: &Value) -> Vec<String> {
    let mut lines = vec![];
    write(body, "", &mut lines);
    lines
}

fn write(body: &Value, indent: &str, lines: &mut Vec<String>) {
    match body {
        Value::Object(map) => {
            for (key, value) in map {
                entry(&format!("{indent}{key}:"), value, indent, lines);
            }
        }
        Value::Array(items) => {
            for item in items {
                if let Value::Object(_) | Value::Array(_) = item {
                    let mut below = vec![];
                    write(item, &format!("{indent}  "), &mut below);
                    if let Some(first) = below.first_mut() {
                        *first = format!("{indent}- {}", first.trim_start());
                    }
                    lines.extend(below);
                } else {
                    lines.push(format!("{indent}- {}", scalar(item)));
                }
            }
        }
        other => lines.push(format!("{indent}{}", scalar(other))),
    }
}

fn entry(head: &str, value: &Value, indent: &str, lines: &mut Vec<String>) {
    match value {
        // Short lists of words are on the line of their key, as in the documentation.
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            let items: Vec<String> = items.iter().map(scalar).collect();
            lines.push(format!("{head} [{}]", items.join(", ")));
        }
        Value::Object(_) | Value::Array(_) => {
            lines.push(head.to_owned());
            write(value, &format!("{indent}  "), lines);
        }
        other => lines.push(format!("{head} {}", scalar(other))),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.strip_prefix('^').unwrap_or(text).to_owned(),
        other => other.to_string(),
    }
}
