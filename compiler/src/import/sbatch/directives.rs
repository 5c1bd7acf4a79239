//! The lines `#SBATCH` of a script, by the rules of `src/sbatch/opt.c`: only those before the first command count, `#`
//! begins a comment, and quotes hold words together.

use std::ops::Range;

use crate::source::{SourceId, Span};
use crate::suggest;

use super::super::draft::Draft;
use super::super::options::by_letter;
use super::super::options::{Argument, Becomes, CommandOption};
use super::options::{OPTIONS, by_name};

/// An option of a line.
pub(super) struct Directive {
    /// The option.
    pub(super) option: &'static CommandOption,
    /// Its argument; empty without one.
    pub(super) value: String,
    /// Both.
    pub(super) span: Span,
}

/// What stands before the first command.
pub(super) struct Head {
    /// The options of each component, in order; more than one in a heterogeneous job.
    pub(super) components: Vec<Vec<Directive>>,
    /// Where the commands begin, with the comments before them.
    pub(super) body: usize,
    /// Comments of their own line, and behind an option: number of the line from 0, text, and whether it is alone.
    pub(super) comments: Vec<(usize, String, bool)>,
}

/// A word of a line with its bytes.
struct Word {
    text: String,
    range: Range<usize>,
}

/// Reads the lines before the first command.
pub(super) fn read(text: &str, id: SourceId, draft: &mut Draft<'_>) -> Head {
    let mut head = Head { components: vec![vec![]], body: text.len(), comments: vec![] };
    let mut start = 0;
    // The end of the last line of options, and the comments up to there.
    let (mut end, mut known) = (0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let content = line.trim();
        if number == 0 && content.starts_with("#!") {
            end = line.len();
        } else if let Some(rest) = ["#SBATCH", "#SLURM"].iter().find_map(|word| line.strip_prefix(word)) {
            let at = start + line.len() - rest.len();
            if rest.starts_with([' ', '\t']) {
                let comment =
                    options(rest.trim_end_matches(['\n', '\r']), at, id, draft, &mut head.components);
                head.comments.extend(comment.map(|text| (number, text, false)));
            } else if !rest.trim().is_empty() {
                let span = Span::new(id, start, start + line.trim_end().len());
                draft.ignored(span, "Slurm ignores the line: a space is missing behind `#SBATCH`", "");
            }
            (end, known) = (start + line.len(), head.comments.len());
        } else if let Some(rest) = content.strip_prefix('#') {
            if rest.trim_start_matches('#').trim_start().starts_with("SBATCH ") {
                let span = Span::new(id, start, start + line.trim_end().len());
                draft.note(span, "a comment: the option is switched off");
                (end, known) = (start + line.len(), head.comments.len());
                start += line.len();
                continue;
            }
            head.comments.push((number, rest.trim_start_matches('#').trim().to_owned(), true));
        } else if !content.is_empty() {
            break;
        }
        start += line.len();
    }
    // Comments behind the options are those of the commands.
    head.body = end;
    head.comments.truncate(known);
    head
}

/// Reports the lines behind the first command, which Slurm ignores.
pub(super) fn late(text: &str, body: usize, id: SourceId, draft: &mut Draft<'_>) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = body;
    for line in text[body..].split_inclusive('\n') {
        if line.starts_with("#SBATCH ") {
            let span = Span::new(id, start, start + line.trim_end().len());
            draft.ignored(
                span,
                "Slurm ignores options behind the first command, and so does jobc",
                "move the line above the first command if it is meant",
            );
            lines.push(start..start + line.len());
        }
        start += line.len();
    }
    lines
}

/// Reads the options of a line, and returns its comment.
fn options(
    text: &str,
    at: usize,
    id: SourceId,
    draft: &mut Draft<'_>,
    found: &mut Vec<Vec<Directive>>,
) -> Option<String> {
    let (words, comment) = words(text, at);
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let span = Span::new(id, word.range.start, word.range.end);
        if word.text == "hetjob" || word.text == "packjob" {
            draft.account.field(span, "roles");
            found.push(vec![]);
            break;
        }
        let Some((option, given)) = option(&word.text, span, draft) else { continue };
        let mut end = word.range.end;
        let value = match (option.argument, given) {
            (Argument::Required, None) => {
                let Some(next) = words.next_if(|next| !next.text.starts_with("--")) else {
                    draft.invalid(span, format!("`--{}` needs a value", option.long), "");
                    continue;
                };
                end = next.range.end;
                next.text
            }
            (Argument::None, Some(_)) => {
                draft.invalid(span, format!("`--{}` takes no value", option.long), "");
                continue;
            }
            (_, given) => given.unwrap_or_default(),
        };
        let span = Span::new(id, word.range.start, end);
        if value.starts_with('<') && value.ends_with('>') || value.contains("{{") || value.contains('$') {
            let message = format!("`{value}` is a placeholder: Slurm expands no variables in options");
            match option.becomes {
                Becomes::Field(_) => draft.invalid(span, message, "write the value"),
                Becomes::Note(why) => draft.note(span, why),
                _ => draft.changed(span, message, "it is left out; write the value to the targets file"),
            }
            continue;
        }
        found.last_mut().expect("the first component").push(Directive { option, value, span });
    }
    comment
}

/// The option that a word names, with the value that it contains.
fn option(word: &str, span: Span, draft: &mut Draft<'_>) -> Option<(&'static CommandOption, Option<String>)> {
    if let Some(rest) = word.strip_prefix("--") {
        let (name, value) = rest.split_once('=').map_or((rest, None), |(name, value)| (name, Some(value)));
        return match by_name(name) {
            Ok(option) => Some((option, value.map(str::to_owned))),
            Err(several) if several.len() > 1 => {
                draft.invalid(
                    span,
                    format!("`--{name}` is ambiguous"),
                    format!("write `--{}`", several.join("` or `--")),
                );
                None
            }
            Err(_) => {
                let near = suggest::nearest(name, OPTIONS.iter().map(|option| option.long));
                let near = near.map(|near| format!("--{near}"));
                let at = Span { end: span.start + u32::try_from(name.len() + 2).unwrap_or(0), ..span };
                draft.unknown(at, format!("unknown option `--{name}` of sbatch"), near.as_deref());
                None
            }
        };
    }
    let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty());
    let Some(letters) = letters else {
        draft.invalid(span, format!("`{word}` is not an option: Slurm stops reading the line here"), "");
        return None;
    };
    let letter = letters.chars().next()?;
    let Some(option) = by_letter(OPTIONS, letter) else {
        draft.invalid(span, format!("unknown option `-{letter}` of sbatch"), "");
        return None;
    };
    // The value follows the letter directly, and may begin with `=`, which is then a part of it in Slurm too.
    let rest = &letters[letter.len_utf8()..];
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    Some((option, (!rest.is_empty()).then(|| rest.to_owned())))
}

/// The words of a line, and its comment.
fn words(text: &str, at: usize) -> (Vec<Word>, Option<String>) {
    let mut words: Vec<Word> = Vec::new();
    let (mut quote, mut is_open, mut escaped) = (None, false, false);
    for (index, c) in text.char_indices() {
        let here = at + index;
        let mut put = |c: char| match words.last_mut().filter(|_| is_open) {
            Some(word) => {
                word.text.push(c);
                word.range.end = here + c.len_utf8();
            }
            None => words.push(Word { text: c.to_string(), range: here..here + c.len_utf8() }),
        };
        match c {
            c if escaped => {
                escaped = false;
                put(c);
                is_open = true;
            }
            '\\' => escaped = true,
            c if quote == Some(c) => {
                quote = None;
                if let Some(word) = words.last_mut() {
                    word.range.end = here + 1;
                }
            }
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                if !is_open {
                    words.push(Word { text: String::new(), range: here..here + 1 });
                    is_open = true;
                }
            }
            '#' if quote.is_none() => return (words, Some(text[index + 1..].trim().to_owned())),
            ' ' | '\t' if quote.is_none() => is_open = false,
            c => {
                put(c);
                is_open = true;
            }
        }
    }
    (words, None)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_follow_the_rules_of_slurm() {
        let check = |text: &str, expected: &[&str], comment: Option<&str>| {
            let (found, rest) = words(text, 0);
            assert_eq!(found.iter().map(|word| word.text.as_str()).collect::<Vec<_>>(), expected, "{text}");
            assert_eq!(rest.as_deref(), comment, "{text}");
        };
        check(" --nodes=1 # why", &["--nodes=1"], Some("why"));
        check(
            "  -N 2 --job-name=\"a b\" --comment 'x # y'",
            &["-N", "2", "--job-name=a b", "--comment", "x # y"],
            None,
        );
        check(r" --comment=a\#b", &["--comment=a#b"], None);
        check("", &[], None);
    }
}
