//! `jobc import`: a job of another tool, rewritten as a job file to edit.
//!
//! Comments above a key and after a value go with it. Commands are only in `run`: what the backend `openpai` would
//! write instead is left out, because a user who edits the file means the visible commands.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::diagnostic::{Diagnostic, DocumentId, Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::emit;
use crate::files::Files;
use crate::import::{
    Account, Comments as CommentLines, Format, Outcome, Read, Selection, comment_lines, import, in_its_words,
    is_foreign, read_document, read_text, text_format,
};
use crate::openpai::without_commands;
use crate::parse::parse;
use crate::source::{Source, SourceId, Sources, Span};
use crate::{format, validate};

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteResult {
    /// The text of a job file, and that of a targets file with the settings of the cluster.
    Job(String, Option<String>),
    /// The file is one of ours already.
    Own,
    /// It has errors, which are in the sink.
    Refused,
}

/// Rewrites a job, and says what became of each part of the file.
pub fn rewrite(
    sources: &mut Sources,
    job: SourceId,
    files: &dyn Files,
    selection: &Selection,
    sink: &mut Sink,
) -> (RewriteResult, Account) {
    if let Some(format) = text_format(sources.get(job)) {
        return match read_text(sources, job, files, selection, sink) {
            Some(read) => finish(read, format, sources, sink),
            None => (RewriteResult::Refused, Account::default()),
        };
    }
    let Some(original) = parse(sources, job, sink) else {
        return (RewriteResult::Refused, Account::default());
    };
    if let Some(read) = read_document(&original, sources, files, selection, sink) {
        return finish(read, Format::Compose, sources, sink);
    }
    (rewrite_document(&original, sources, job, files, sink), Account::default())
}

/// Writes what was read.
fn finish(read: Read, format: Format, sources: &Sources, sink: &mut Sink) -> (RewriteResult, Account) {
    let [of_job, of_targets] = apart(read.comments, &read.account, sources);
    let targets = read.targets.map(|settings| targets_file(settings, of_targets, sources));
    let document = read.document.filter(|document| {
        let is_sound = validate::validate(document, sink);
        sink.locate(DocumentId::Job, document, sources);
        is_sound && !sink.has_errors()
    });
    let result = document.map_or(RewriteResult::Refused, |document| {
        let text = with_comments(written(&document), &document, of_job, sources);
        RewriteResult::Job(text, targets)
    });
    in_its_words(format, sink);
    (result, read.account)
}

/// Rewrites a job in YAML or JSON.
fn rewrite_document(
    original: &Document,
    sources: &mut Sources,
    job: SourceId,
    files: &dyn Files,
    sink: &mut Sink,
) -> RewriteResult {
    if validate::report_foreign(original, sink) {
        sink.locate(DocumentId::Job, original, sources);
        return RewriteResult::Refused;
    }
    if !is_foreign(original) && !is_job_like(original) {
        sink.push(unknown_format(original));
        return RewriteResult::Refused;
    }
    if !is_foreign(original) {
        return if sink.has_errors() { RewriteResult::Refused } else { RewriteResult::Own };
    }
    let Some(mut document) =
        import(original.clone(), sources, files, &Selection::default(), sink).filter(|_| !sink.has_errors())
    else {
        return RewriteResult::Refused;
    };
    let sound = validate::validate(&document, sink);
    sink.locate(DocumentId::Job, &document, sources);
    if !sound {
        return RewriteResult::Refused;
    }
    leave_out_commands(&mut document);
    let text = emit::to_yaml(&document.to_json());
    let comments = vec![(job, comment_lines(original, sources.get(job)))];
    RewriteResult::Job(with_comments(text, &document, comments, sources), None)
}

/// Whether a document has a key that only job files have together.
fn is_job_like(document: &Document) -> bool {
    ["roles", "uses"].iter().any(|key| document.root.get(key).is_some())
}

/// The finding for a file of no known format.
fn unknown_format(document: &Document) -> Diagnostic {
    let root = &document.root;
    let at = root.entries().first().map_or(root.span, |entry| entry.key_span);
    Diagnostic::error(codes::FOREIGN_FILE, "the file is in none of the formats that are read")
        .at_span(at, "")
        .note("a batch script of Slurm begins with `#!` and has lines `#SBATCH`, a file of a command line begins with `docker run` or `podman run`, a Compose file has `services` with `image` or `build`, a manifest of Kubernetes has `apiVersion` and `kind`, a job of OpenPAI has `taskRoles`, a task of SkyPilot has `run` and `resources`, an application of TorchX has a list of `roles` with `entrypoint`, a development container has `image` and `customizations`, and a job file of jobc has `roles`")
        .note("`jobc import --list` lists the formats")
}

/// The text of a document in the canonical form.
fn written(document: &Document) -> String {
    let text = emit::to_yaml(&document.to_json());
    format::format(&text).unwrap_or(text)
}

/// A targets file with the settings of one target.
fn targets_file(mut settings: Node, comments: Vec<(SourceId, CommentLines)>, sources: &Sources) -> String {
    let at = settings.span;
    let backend = if settings.get("kubernetes").is_some() { "kubernetes" } else { "slurm" };
    if let Value::Mapping(entries) = &mut settings.value {
        let backends = crate::import::plain(at, &serde_json::json!([backend]));
        entries.insert(0, Entry { key: "backends".to_owned(), key_span: at, value: backends });
    }
    let entry = |key: &str, value: Node| Entry { key: key.to_owned(), key_span: at, value };
    let map = |entries: Vec<Entry>| Node { span: at, value: Value::Mapping(entries) };
    let version = crate::import::plain(at, &serde_json::json!(1));
    let targets = map(vec![entry("cluster", settings)]);
    let document = Document { root: map(vec![entry("version", version), entry("targets", targets)]) };
    with_comments(written(&document), &document, comments, sources)
}

/// The comments of the job and those of the target. A comment behind an option goes where the option goes; that of one
/// that needs no field goes with it.
fn apart(
    comments: Vec<(SourceId, CommentLines)>,
    account: &Account,
    sources: &Sources,
) -> [Vec<(SourceId, CommentLines)>; 2] {
    let [mut of_job, mut of_targets] = [vec![], vec![]];
    for (id, lines) in comments {
        let outcomes = |line: usize| -> Vec<&Outcome> {
            let rows = account.rows().into_iter().filter(|row| row.span.source == id);
            let at = |span: Span| sources.get(id).line_column(span.start).line as usize - 1;
            rows.filter(|row| at(row.span) == line).map(|row| &row.outcome).collect()
        };
        let (mut job, mut targets) = (CommentLines::new(), CommentLines::new());
        for (line, comment) in lines {
            let of_line = if comment.1 { vec![] } else { outcomes(line) };
            let are =
                |is: fn(&Outcome) -> bool| !of_line.is_empty() && of_line.iter().all(|outcome| is(outcome));
            if are(|outcome| matches!(outcome, Outcome::Target(_))) {
                targets.insert(line, comment);
            } else if !are(|outcome| matches!(outcome, Outcome::Note(_))) {
                job.insert(line, comment);
            }
        }
        of_job.push((id, job));
        of_targets.push((id, targets));
    }
    [of_job, of_targets]
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

/// Puts the comments of the originals into the text that was made of them.
fn with_comments(
    text: String,
    document: &Document,
    comments: Vec<(SourceId, CommentLines)>,
    sources: &Sources,
) -> String {
    let mut made = Sources::new();
    let id = made.add(Source::new("job.yaml", text.as_str()));
    let Some(written) = parse(&made, id, &mut Sink::new()) else { return text };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut placed = Vec::new();
    for (of, comments) in comments {
        let source = sources.get(of);
        let mut comments =
            Comments { lines: comments, of, source, used: BTreeSet::new(), keys: vec![], placed: vec![] };
        comments.walk(&document.root, &written.root, made.get(id));
        comments.take_rest(lines.len());
        placed.extend(comments.placed);
    }
    // From the end, so that lines keep their numbers; after a line before above it, for the same reason.
    placed.sort_by_key(|comment| (std::cmp::Reverse(comment.line), !comment.behind));
    for comment in placed {
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

struct Comments<'a> {
    lines: IndexMap<usize, (String, bool)>,
    /// The file whose comments they are.
    of: SourceId,
    source: &'a Source,
    used: BTreeSet<usize>,
    /// The line of each key in the original, with its line and indentation in the output.
    keys: Vec<(usize, usize, usize)>,
    placed: Vec<CommentPlacement>,
}

impl Comments<'_> {
    fn walk(&mut self, ours: &Node, written: &Node, made: &Source) {
        for (at, entry) in ours.entries().iter().enumerate() {
            // The canonical form may have another order.
            let same = |to: &&Entry| to.key == entry.key;
            let to = written.entries().get(at).filter(same).or_else(|| written.entries().iter().find(same));
            let Some(to) = to else { continue };
            let place = made.line_column(to.key_span.start);
            let (line, indent) = (place.line as usize - 1, place.column as usize - 1);
            if entry.key_span.source != self.of {
                self.walk(&entry.value, &to.value, made);
                continue;
            }
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
        if entry.key == "run" && entry.value.span.source == self.of {
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
            && entry.value.span.source == self.of
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
