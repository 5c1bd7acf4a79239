//! `jobc import`: a job of another tool, rewritten as a job file to edit.
//!
//! Comments above a key and after a value go with it. Commands are only in `run`: what the backend `openpai` would
//! write instead is left out, because a user who edits the file means the visible commands.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::diagnostic::{DocumentId, Sink};
use crate::document::{Document, Entry, Node, Value};
use crate::emit;
use crate::import::{import, is_foreign};
use crate::openpai::without_commands;
use crate::parse::parse;
use crate::source::{Source, SourceId, Sources};
use crate::validate;

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteResult {
    /// The text of a job file.
    Job(String),
    /// The file is one of ours already.
    Own,
    /// It has errors, which are in the sink.
    Refused,
}

/// Rewrites a job.
pub fn rewrite(sources: &mut Sources, job: SourceId, sink: &mut Sink) -> RewriteResult {
    let Some(original) = parse(sources, job, sink) else { return RewriteResult::Refused };
    if validate::report_foreign(&original, sink) {
        sink.locate(DocumentId::Job, &original, sources);
        return RewriteResult::Refused;
    }
    if !is_foreign(&original) {
        return if sink.has_errors() { RewriteResult::Refused } else { RewriteResult::Own };
    }
    let Some(mut document) = import(original.clone(), sources, sink).filter(|_| !sink.has_errors()) else {
        return RewriteResult::Refused;
    };
    let sound = validate::validate(&document, sink);
    sink.locate(DocumentId::Job, &document, sources);
    if !sound {
        return RewriteResult::Refused;
    }
    leave_out_commands(&mut document);
    let text = emit::to_yaml(&document.to_json());
    let text = with_comments(text, &document, &original, sources.get(job));
    RewriteResult::Job(text)
}

/// Removes from `openpai.protocol` what `run` and `setup` contain.
fn leave_out_commands(document: &mut Document) {
    let params: Vec<String> = document
        .root
        .get("params")
        .map_or(&[][..], Node::entries)
        .iter()
        .map(|param| param.key.clone())
        .collect();
    let Value::Mapping(entries) = &mut document.root.value else { return };
    let Some(openpai) = entries.iter_mut().find(|entry| entry.key == "openpai") else { return };
    let Value::Mapping(settings) = &mut openpai.value.value else { return };
    if let Some(place) = settings.iter().position(|entry| entry.key == "protocol") {
        let span = settings[place].value.span;
        let mut fields: IndexMap<String, serde_json::Value> =
            settings[place].value.entries().iter().map(|e| (e.key.clone(), e.value.to_json())).collect();
        without_commands(&mut fields);
        if let Some(serde_json::Value::Object(parameters)) = fields.get_mut("parameters") {
            parameters.retain(|name, _| !params.contains(name));
        }
        fields.retain(|_, value| value.as_object().is_none_or(|map| !map.is_empty()));
        if fields.is_empty() {
            settings.remove(place);
        } else {
            let map = serde_json::Value::Object(fields.into_iter().collect());
            settings[place].value = crate::import::plain(span, &map);
        }
    }
    if settings.is_empty() {
        entries.retain(|entry| entry.key != "openpai");
    }
}

/// A comment and the line of the output it goes to.
struct CommentPlacement {
    line: usize,
    indent: usize,
    text: String,
    behind: bool,
}

/// Puts the original's comments into the text that was made of it.
fn with_comments(text: String, document: &Document, original: &Document, source: &Source) -> String {
    let mut made = Sources::new();
    let id = made.add(Source::new("job.yaml", text.as_str()));
    let Some(written) = parse(&made, id, &mut Sink::new()) else { return text };
    let mut comments = Comments {
        lines: comment_lines(original, source),
        source,
        used: BTreeSet::new(),
        keys: vec![],
        placed: vec![],
    };
    comments.walk(&document.root, &written.root, made.get(id));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    comments.take_rest(lines.len());
    // From the end, so that lines keep their numbers; after a line before above it, for the same reason.
    comments.placed.sort_by_key(|comment| (std::cmp::Reverse(comment.line), !comment.behind));
    for comment in comments.placed {
        if comment.behind {
            lines[comment.line].push_str(&format!("  # {}", comment.text));
        } else {
            let above = comment.text.lines().map(|line| format!("{}# {line}", " ".repeat(comment.indent)));
            let above: Vec<String> = above.map(|line| line.trim_end().to_owned()).collect();
            lines.splice(comment.line..comment.line, above);
        }
    }
    lines.join("\n") + "\n"
}

/// The comments of a source, by the number of their line: the text, and whether the line holds nothing else.
fn comment_lines(original: &Document, source: &Source) -> IndexMap<usize, (String, bool)> {
    let mut scalars = Vec::new();
    collect_scalars(&original.root, &mut scalars);
    let mut comments = IndexMap::new();
    let mut start = 0;
    // The line where a comment of several lines begins.
    let mut open: Option<usize> = None;
    for (number, line) in source.text().split_inclusive('\n').enumerate() {
        if let Some((text, _)) = open.and_then(|first| comments.get_mut(&first)) {
            let part =
                line.split("*/").next().unwrap_or_default().trim().trim_start_matches('*').trim_start();
            let text: &mut String = text;
            if !part.is_empty() {
                text.push('\n');
                text.push_str(part);
            }
            open = open.filter(|_| !line.contains("*/"));
            start += line.len();
            continue;
        }
        let inside =
            |at: usize| scalars.iter().any(|range: &std::ops::Range<usize>| range.contains(&(start + at)));
        let marks = line.match_indices('#').chain(line.match_indices("//")).chain(line.match_indices("/*"));
        let blank_before = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
        if let Some((at, mark)) = marks.filter(|(at, _)| blank_before(*at) && !inside(*at)).min() {
            let rest = &line[at + mark.len()..];
            let (text, after) =
                if mark == "/*" { rest.split_once("*/").unwrap_or((rest, "")) } else { (rest, "") };
            if mark == "/*" && !rest.contains("*/") {
                open = Some(number);
            }
            let whole = line[..at].trim().is_empty() && after.trim().is_empty();
            comments.insert(number, (text.trim_start_matches('*').trim().to_owned(), whole));
        }
        start += line.len();
    }
    comments
}

fn collect_scalars(node: &Node, ranges: &mut Vec<std::ops::Range<usize>>) {
    match &node.value {
        Value::Mapping(entries) => entries.iter().for_each(|entry| {
            ranges.push(entry.key_span.range());
            collect_scalars(&entry.value, ranges);
        }),
        Value::Sequence(items) => items.iter().for_each(|item| collect_scalars(item, ranges)),
        _ => ranges.push(node.span.range()),
    }
}

struct Comments<'a> {
    lines: IndexMap<usize, (String, bool)>,
    source: &'a Source,
    used: BTreeSet<usize>,
    /// The line of each key in the original, with its line and indentation in the output.
    keys: Vec<(usize, usize, usize)>,
    placed: Vec<CommentPlacement>,
}

impl Comments<'_> {
    fn walk(&mut self, ours: &Node, written: &Node, made: &Source) {
        for (entry, to) in ours.entries().iter().zip(written.entries()) {
            let place = made.line_column(to.key_span.start);
            let (line, indent) = (place.line as usize - 1, place.column as usize - 1);
            let from = self.source.line_column(entry.key_span.start).line as usize - 1;
            self.keys.push((from, line, indent));
            self.take(entry, line, indent, single(&entry.value));
            self.walk(&entry.value, &to.value, made);
        }
    }

    /// Places the comments above a key, after its value and, for commands, between them.
    fn take(&mut self, entry: &Entry, line: usize, indent: usize, one_line: bool) {
        let key = self.source.line_column(entry.key_span.start).line as usize - 1;
        let mut above: Vec<usize> = Vec::new();
        let mut number = key;
        while number > 0 && self.is_whole(number - 1) {
            number -= 1;
            above.insert(0, number);
        }
        if entry.key == "run" {
            let end = self.source.line_column(entry.value.span.end).line as usize - 1;
            above.extend((key + 1..=end).filter(|number| self.is_whole(*number)));
        }
        let above: Vec<usize> = above.into_iter().filter(|number| self.used.insert(*number)).collect();
        if !above.is_empty() {
            let text: Vec<&str> = above.iter().map(|number| self.lines[number].0.as_str()).collect();
            self.placed.push(CommentPlacement { line, indent, text: text.join("\n"), behind: false });
        }
        let value = self.source.line_column(entry.value.span.end).line as usize - 1;
        if one_line
            && value == key
            && self.lines.get(&key).is_some_and(|(_, whole)| !whole)
            && self.used.insert(key)
        {
            self.placed.push(CommentPlacement {
                line,
                indent,
                text: self.lines[&key].0.clone(),
                behind: true,
            });
        }
    }

    /// Places the comments that are left, those of fields that have no counterpart here: above the next key that has,
    /// else at the end.
    fn take_rest(&mut self, end: usize) {
        let rest: Vec<usize> =
            self.lines.keys().copied().filter(|number| !self.used.contains(number)).collect();
        let mut placed: Vec<CommentPlacement> = Vec::new();
        for number in rest {
            let next = self
                .keys
                .iter()
                .filter(|(from, ..)| *from >= number)
                .min_by_key(|(from, line, _)| (*from, *line));
            let (line, indent) = next.map_or((end, 0), |(_, line, indent)| (*line, *indent));
            let text = &self.lines[&number].0;
            match placed.last_mut().filter(|last| last.line == line) {
                Some(last) => last.text = format!("{}\n{text}", last.text),
                None => placed.push(CommentPlacement { line, indent, text: text.clone(), behind: false }),
            }
        }
        self.placed.extend(placed);
    }

    fn is_whole(&self, number: usize) -> bool {
        self.lines.get(&number).is_some_and(|(_, whole)| *whole)
    }
}

/// Whether a value takes one line.
fn single(node: &Node) -> bool {
    match &node.value {
        Value::String(text) => !text.contains('\n'),
        Value::Mapping(_) | Value::Sequence(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
