//! A line of `docker run` or `podman run`: one role of the image.

mod fields;
mod options;

use std::collections::BTreeMap;

use crate::diagnostic::Sink;
use crate::files::Files;
use crate::source::{SourceId, Sources, Span};
use crate::suggest;

use super::container::{self, Role};
use super::draft::Draft;
use super::nodes::{sequence, string};
use super::options::{Argument, Becomes, CommandOption, by_letter};
use super::read::{Comments, Read};
use super::words::{Piece, Word, split};

pub(super) use options::OPTIONS;

/// The only role.
const ROLE: &str = "main";

/// Where the command begins in a text that holds one line of `docker run`, comments, variables for it, and lines such as
/// `docker pull`.
pub(super) fn command(text: &str) -> Option<usize> {
    for line in lines(text) {
        let begin = line.as_ptr() as usize - text.as_ptr() as usize;
        let at = begin + line.len() - line.trim_start_matches(['\u{feff}', ' ', '\t']).len();
        match engine(&text[at..]) {
            Some("run" | "create") => return Some(at),
            Some("pull" | "rm" | "stop" | "kill") => {}
            _ if assignment(line).is_some() => {}
            _ => return None,
        }
    }
    None
}

/// The lines that are neither empty nor comments nor options of the shell.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let is_content = |line: &&str| {
        let line = line.trim_start_matches('\u{feff}').trim();
        !line.is_empty() && !line.starts_with('#') && !line.starts_with("set -")
    };
    text.lines().filter(is_content)
}

/// The command of the engine that a line begins with: `run` of `sudo docker run`.
fn engine(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().filter(|word| *word != "\\").peekable();
    words.next_if(|word| *word == "$");
    if words.next_if(|word| *word == "sudo").is_some() {
        words.next_if(|word| word.starts_with('-'));
    }
    matches!(words.next()?, "docker" | "podman" | "nerdctl" | "nvidia-docker").then_some(())?;
    words.next_if(|word| *word == "container");
    words.next()
}

/// `NAME=VALUE` of a line that sets a variable.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // A computed value stays a variable of the caller.
    is_name.then_some((name, value.trim()))
}

/// The variables that the lines before the command set; each line has a row.
fn variables(text: &str, id: SourceId, draft: &mut Draft<'_>) -> BTreeMap<String, Vec<Word>> {
    let mut known = BTreeMap::new();
    for line in lines(text) {
        let begin = line.as_ptr() as usize - text.as_ptr() as usize;
        let part = Span::new(id, begin, begin + line.trim_end().len());
        let Some((name, value)) = assignment(line) else {
            draft.note(part, "jobc fetches images, and removes its containers by itself");
            continue;
        };
        let words = split(value, 0).ok().filter(|words| words.end == value.len()).map(|words| words.words);
        let is_plain = |word: &Word| !word.pieces.iter().any(|piece| matches!(piece, Piece::Other(_)));
        match words.filter(|words| words.len() < 2 && words.iter().all(is_plain)) {
            Some(words) => {
                let text = words.iter().map(Word::text).collect::<String>();
                let options = if text.starts_with('-') { split(&text, 0).ok() } else { None };
                known.insert(name.to_owned(), options.map_or(words, |options| options.words));
                draft.note(part, format!("`{name}` has this value in the command"));
            }
            None => draft.changed(
                part,
                format!("`{name}` is computed by the shell: it is a parameter that takes the variable of the caller"),
                format!("`export {name}`, or `--set {name}=…`"),
            ),
        }
    }
    known
}

/// Words in which variables have the values that the script gives them; those of options may be several words.
fn with_values(words: Vec<Word>, known: &BTreeMap<String, Vec<Word>>) -> Vec<Word> {
    let mut all = Vec::new();
    for word in words {
        if let [Piece::Variable(name)] = &word.pieces[..]
            && let Some(values) = known.get(name)
        {
            all.extend(values.iter().map(|value| Word { range: word.range.clone(), ..value.clone() }));
            continue;
        }
        let value = |piece: Piece| {
            let found = if let Piece::Variable(name) = &piece { known.get(name) } else { None };
            match found.map(Vec::as_slice) {
                Some([]) => vec![],
                Some([value]) => value.pieces.clone(),
                _ => vec![piece],
            }
        };
        let mut pieces: Vec<Piece> = Vec::new();
        for piece in word.pieces.into_iter().flat_map(value) {
            if let (Some(Piece::Text(text)), Piece::Text(more)) = (pieces.last_mut(), &piece) {
                text.push_str(more);
            } else {
                pieces.push(piece);
            }
        }
        all.push(Word { pieces, range: word.range });
    }
    all
}

/// Reads a line.
pub(super) fn read(sources: &Sources, id: SourceId, at: usize, files: &dyn Files, sink: &mut Sink) -> Read {
    let text = sources.get(id).text();
    let errors = sink.error_count();
    let span = |range: std::ops::Range<usize>| Span::new(id, range.start, range.end);
    let line_end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    let mut draft = Draft::new(span(at..line_end), sink);
    let mut comments = Comments::new();
    for (number, line) in text[..at].lines().enumerate() {
        if let Some(comment) = line.trim().strip_prefix('#').filter(|comment| !comment.starts_with('!')) {
            comments.insert(number, (comment.trim().to_owned(), true));
        }
    }
    match split(text, at) {
        Err(quote) => draft.invalid(span(quote..quote + 1), "the quote is not closed", ""),
        Ok(words) => {
            let rest = &text[words.end..];
            let is_content = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
            if let Some(line) = rest.lines().find(is_content) {
                let begin = line.as_ptr() as usize - text.as_ptr() as usize;
                draft.refuse(
                    span(begin..begin + line.len()),
                    "the shell does more here than start one container",
                    "import one `docker run` at a time, and write a role for each in one job file",
                );
            }
            let known = variables(&text[..at], id, &mut draft);
            line(with_values(words.words, &known), id, files, &mut draft);
        }
    }
    let has_errors = draft.sink.error_count() > errors;
    let (document, targets, account) = draft.finish();
    Read { document: (!has_errors).then_some(document), targets, account, comments: vec![(id, comments)] }
}

fn line(words: Vec<Word>, id: SourceId, files: &dyn Files, draft: &mut Draft<'_>) {
    let span = |word: &Word| Span::new(id, word.range.start, word.range.end);
    let mut words = words.into_iter().peekable();
    // Up to `run`.
    for word in words.by_ref() {
        if ["run", "create"].contains(&word.text().as_str()) {
            break;
        }
    }
    let mut given = fields::RunOptions::default();
    let mut role = Role { draft, name: ROLE };
    while let Some(word) = words.next_if(|word| matches!(word.pieces.first(), Some(Piece::Text(text)) if text.starts_with('-') && text.len() > 1)) {
        let text = word.text();
        if text == "--" {
            break;
        }
        let mut part = span(&word);
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            let Some(option) = options::by_name(name) else {
                let near = suggest::nearest(name, OPTIONS.iter().map(|option| option.long));
                let near = near.map(|near| format!("--{near}"));
                let at = Span { end: part.start + u32::try_from(name.len() + 2).unwrap_or(0), ..part };
                role.draft.unknown(at, format!("unknown option `--{name}` of `docker run`"), near.as_deref());
                continue;
            };
            let value = if long.contains('=') {
                word.after(name.len() + 3)
            } else if option.argument == Argument::Required {
                let Some(next) = words.next() else {
                    role.draft.invalid(part, format!("`--{name}` needs a value"), "");
                    break;
                };
                part.end = span(&next).end;
                next
            } else {
                Word::plain("", word.range.clone())
            };
            take(option, &value, part, &mut given, files, &mut role);
            continue;
        }
        // Letters without an argument may stand together: `-it`.
        let letters: Vec<char> = text.chars().skip(1).collect();
        for (index, letter) in letters.iter().enumerate() {
            let Some(option) = by_letter(options::OPTIONS, *letter) else {
                role.draft.invalid(part, format!("unknown option `-{letter}` of `docker run`"), "");
                break;
            };
            if option.argument == Argument::None {
                take(option, &Word::plain("", word.range.clone()), part, &mut given, files, &mut role);
                continue;
            }
            let before: usize = 1 + letters[..=index].iter().map(|c| c.len_utf8()).sum::<usize>();
            let rest = word.after(before);
            let has_rest = !rest.pieces.is_empty();
            let value = if has_rest { without_equals(rest) } else if let Some(next) = words.next() {
                part.end = span(&next).end;
                next
            } else {
                role.draft.invalid(part, format!("`-{letter}` needs a value"), "");
                break;
            };
            take(option, &value, part, &mut given, files, &mut role);
            break;
        }
    }
    let Some(image) = words.next() else {
        let at = Span::new(id, 0, 1);
        return role.draft.invalid(at, "the line names no image", "");
    };
    let part = span(&image);
    let Some(reference) = fields::resolved(&image, part, role.draft) else { return };
    role.draft.field(&["image"], part, string(part, &reference));
    if role.draft.get(&["name"]).is_none() {
        let name = container::image_name(&reference).unwrap_or("job".to_owned());
        role.draft.set(&["name"], part, string(part, name));
    }
    let rest: Vec<Word> = words.collect();
    let mut program = Vec::new();
    for word in &rest {
        let Some(text) = fields::resolved(word, span(word), role.draft) else { continue };
        program.push(string(span(word), text));
    }
    let all = match (rest.first(), rest.last()) {
        (Some(first), Some(last)) => Span { end: span(last).end, ..span(first) },
        _ => part,
    };
    match given.entrypoint {
        Some((entrypoint, at)) => {
            let mut run = vec![string(at, entrypoint)];
            run.extend(program);
            let run = sequence(at, run);
            if !rest.is_empty() {
                role.draft.account.field(all, "roles.main.run");
            }
            role.field(&["run"], at, run);
        }
        None if program.is_empty() && role.get(&[]).is_some() => {}
        None if program.is_empty() => role.draft.set(&["roles", ROLE], part, super::nodes::map(part, vec![])),
        None => role.field(&["args"], all, sequence(all, program)),
    }
}

fn without_equals(word: Word) -> Word {
    let starts = matches!(word.pieces.first(), Some(Piece::Text(text)) if text.starts_with('='));
    if starts { word.after(1) } else { word }
}

fn take(
    option: &CommandOption,
    value: &Word,
    part: Span,
    given: &mut fields::RunOptions,
    files: &dyn Files,
    role: &mut Role<'_, '_>,
) {
    match option.becomes {
        Becomes::Note(why) => role.draft.note(part, why),
        Becomes::Refusal(what, instead) => role.draft.refuse(part, what, instead),
        _ => {
            if option.argument == Argument::None && value.text() == "false" {
                return role.draft.note(part, "the default");
            }
            given.take(option.long, value, part, files, role);
        }
    }
}
