//! The order of keys: what a job is, what it needs, what it runs.
//!
//! Only known keys in block maps are sorted. User-defined names and keys in brackets keep their
//! positions.

use std::ops::Range;

use super::lines::Lines;
use crate::document::{Document, Node, Value};

const JOB: [&str; 36] = [
    "version",
    "name",
    "description",
    "uses",
    "with",
    "params",
    "secrets",
    "image",
    "images",
    "registries",
    "network",
    "extra_hosts",
    "dns",
    "matrix",
    "code",
    "data",
    "outputs",
    "metrics",
    "env",
    "roles",
    "distributed",
    "gang",
    "priority",
    "after",
    "schedule",
    "notify",
    "idle",
    "retry",
    "timeout",
    "grace_period",
    "preflight",
    "stall",
    "preemption",
    "budget",
    "compat",
    "openpai",
];

const ROLE: [&str; 30] = [
    "uses",
    "with",
    "image",
    "instances",
    "parallel",
    "matrix",
    "needs",
    "user",
    "workdir",
    "resources",
    "env",
    "labels",
    "data",
    "outputs",
    "files",
    "metrics",
    "ready",
    "security",
    "completion",
    "retry",
    "timeout",
    "grace_period",
    "preflight",
    "stall",
    "stop_signal",
    "init",
    "shell",
    "setup",
    "run",
    "args",
];

/// The text with its keys in order.
pub(super) fn forms(text: &str, document: &Document) -> Vec<String> {
    let Some(roles) = document.root.get("roles").filter(|roles| matches!(roles.value, Value::Mapping(_)))
    else {
        return vec![];
    };
    let text = Lines::new(text);
    let mut lines: Vec<&str> = (0..text.line_count()).map(|line| text.whole(line)).collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    // Inner maps first: their lines stay within the entry of the outer one.
    for role in roles.entries() {
        sort(&role.value, &ROLE, &text, &mut lines);
    }
    sort(&document.root, &JOB, &text, &mut lines);
    vec![lines.concat()]
}

/// Sorts the entries of a map.
fn sort(map: &Node, order: &[&str], text: &Lines<'_>, lines: &mut [&str]) {
    let Some(chunks) = chunks(map, text, lines.len()) else { return };
    let rank = |key: &str| order.iter().position(|known| *known == key).unwrap_or(order.len());
    let mut sorted: Vec<usize> = (0..chunks.len()).collect();
    sorted.sort_by_key(|&at| rank(&map.entries()[at].key));
    if sorted.is_sorted() {
        return;
    }
    let start = chunks[0].start;
    let mut bodies: Vec<Vec<&str>> = chunks.iter().map(|chunk| lines[chunk.clone()].to_vec()).collect();
    // The first entry has no blank lines above it: it swaps them with the entry that becomes the first.
    let blanks = bodies[sorted[0]].iter().take_while(|line| line.trim().is_empty()).count();
    let blank: Vec<&str> = bodies[sorted[0]].drain(..blanks).collect();
    bodies[0].splice(0..0, blank);
    let new: Vec<&str> = sorted.iter().flat_map(|&at| bodies[at].iter().copied()).collect();
    lines[start..start + new.len()].copy_from_slice(&new);
}

/// The lines of each entry of a block, including the comments and blank lines above it; `None` for other maps.
fn chunks(map: &Node, text: &Lines<'_>, line_count: usize) -> Option<Vec<Range<usize>>> {
    let entries = map.entries();
    if text.is_flow(map) || entries.is_empty() {
        return None;
    }
    let column = text.column(entries[0].key_span.start as usize);
    let mut starts = vec![];
    for (at, entry) in entries.iter().enumerate() {
        let key = entry.key_span.start as usize;
        let line = text.line_of(key);
        if text.column(key) != column || !text.content(line)[..column].bytes().all(|byte| byte == b' ') {
            return None;
        }
        // A comment directly above the key, at its depth, moves with it. Others belong to the previous entry or file.
        let floor = match at {
            0 => 0,
            _ => end_of(&entries[at - 1].value, entries[at - 1].key_span.end as usize, text) + 1,
        };
        let is_about_key = |line: usize| {
            let content = text.content(line);
            content.trim_start().starts_with('#') && content.len() - content.trim_start().len() == column
        };
        let comment = (floor..line).rev().take_while(|&line| is_about_key(line)).last().unwrap_or(line);
        let mut start = if at == 0 && comment == 0 { line } else { comment };
        while at > 0 && start > floor && text.is_blank(start - 1) {
            start -= 1;
        }
        starts.push(start);
    }
    let last = entries.last()?;
    let end = (end_of(&last.value, last.key_span.end as usize, text) + 1).min(line_count);
    let ends = starts.iter().skip(1).copied().chain([end]);
    Some(starts.iter().zip(ends).map(|(&start, end)| start..end).collect())
}

/// The last line of an entry.
fn end_of(value: &Node, key_end: usize, text: &Lines<'_>) -> usize {
    let mut end = (value.span.end as usize).max(key_end);
    let bytes = text.as_str().as_bytes();
    // A block scalar's span may include its line ending.
    while end > key_end && matches!(bytes.get(end - 1), Some(b'\n' | b'\r')) {
        end -= 1;
    }
    text.line_of(end)
}
