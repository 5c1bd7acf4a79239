//! The steps of a script: the commands that `srun` starts.

use std::ops::Range;

use crate::source::{SourceId, Span};

use super::super::draft::Draft;
use super::super::options::Argument;
use super::super::options::by_letter;
use super::super::words::{Piece, Word, split};
use super::options::{OF_SRUN, OPTIONS, by_name};
use super::scan::Class;

/// Words before a command that is still the beginning of a command.
const BEFORE: [&str; 12] =
    ["then", "do", "else", "time", "exec", "eval", "nohup", "sudo", "env", "command", "!", "{"];

/// An option of a step.
pub(super) struct StepOption {
    /// The long name.
    pub(super) name: &'static str,
    /// The value; empty without one.
    pub(super) value: Word,
    /// Both, in the file.
    pub(super) span: Span,
}

/// A command that `srun` starts.
pub(super) struct Step {
    /// `srun` with its options, in the body.
    pub(super) range: Range<usize>,
    /// The options.
    pub(super) options: Vec<StepOption>,
    /// The command, as written.
    pub(super) command: String,
    /// Where the command ends.
    pub(super) end: usize,
    /// Whether the shell goes on before it ends.
    pub(super) background: bool,
}

impl Step {
    /// Whether the program is one of MPI, which `srun` starts.
    pub(super) fn is_mpi(&self) -> bool {
        self.option("mpi").is_some_and(|option| !["none", "list"].contains(&option.value.text().as_str()))
    }

    /// Whether a component of a heterogeneous job runs it: by default the first does.
    pub(super) fn is_of(&self, component: usize) -> bool {
        let groups = self.option("het-group").map_or("0".to_owned(), |option| option.value.text());
        groups.split(',').any(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            matches!((first.parse::<usize>(), last.parse::<usize>()), (Ok(first), Ok(last)) if (first..=last).contains(&component))
        })
    }

    /// The value of its last option with a name.
    pub(super) fn option(&self, name: &str) -> Option<&StepOption> {
        self.options.iter().rev().find(|option| option.name == name)
    }
}

/// Where commands with a name begin, in the body.
pub(super) fn commands(body: &str, classes: &[Class], name: &str) -> Vec<usize> {
    let bytes = body.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./$=:".contains(byte);
    let found = body.match_indices(name).map(|(at, _)| at).filter(|&at| {
        let end = at + name.len();
        matches!(classes[at], Class::Code | Class::Double)
            && bytes.get(end).is_none_or(|byte| b" \t\n\r\\;\"'".contains(byte))
            && !(at > 0 && is_part(&bytes[at - 1]))
    });
    found.filter(|&at| begins_command(body, at)).collect()
}

fn begins_command(body: &str, at: usize) -> bool {
    let before = body[..at].trim_end_matches([' ', '\t']);
    let joined = before.strip_suffix("\\\n").map_or(before, |text| text.trim_end_matches([' ', '\t']));
    let Some(last) = joined.chars().next_back() else { return true };
    if "\n;|&(\"'`".contains(last) {
        return true;
    }
    let word = joined.rsplit([' ', '\t', '\n', ';', '(']).next().unwrap_or_default();
    let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    BEFORE.contains(&word) || is_assignment && last != '='
}

/// Reads the steps of a body that begins at a byte of the file.
pub(super) fn read(
    body: &str,
    classes: &[Class],
    (start, id): (usize, SourceId),
    is_heterogeneous: bool,
    draft: &mut Draft<'_>,
) -> Vec<Step> {
    let span = |range: Range<usize>| Span::new(id, start + range.start, start + range.end);
    let mut steps = Vec::new();
    for at in commands(body, classes, "srun") {
        let limit = limit(body, classes, at);
        let Ok(words) = split(&body[..limit], at) else {
            draft.invalid(span(at..at + 4), "a quote of this command is not closed", "");
            continue;
        };
        // Programs of several components, each with its options: `srun A : --het-group=1 B`.
        let is_colon = |word: &Word| is_heterogeneous && word.text() == ":";
        let mut rest = words.words.into_iter().peekable();
        while let Some(first) = rest.next() {
            let start = first.range.start;
            let mut step = Step {
                range: start..words.end,
                options: vec![],
                command: String::new(),
                end: words.end,
                background: false,
            };
            while let Some(word) = rest.next_if(|word| is_option(body, word)) {
                let text = word.text();
                if !text.starts_with('-') {
                    let note = "options of `srun` in a variable: jobc starts the tasks";
                    draft.note(span(word.range.clone()), note);
                    continue;
                }
                if text == "--" {
                    break;
                }
                if let Some(option) = option(&word, &mut rest, &span, draft) {
                    step.options.push(option);
                }
            }
            let Some(program) = rest.peek() else {
                draft.invalid(span(at..at + 4), "`srun` without a command", "");
                break;
            };
            step.range.end = program.range.start;
            while let Some(word) = rest.next_if(|word| !is_colon(word)) {
                step.end = word.range.end;
            }
            body[step.range.end..step.end].clone_into(&mut step.command);
            let after = body[words.end..].trim_start_matches([' ', '\t']);
            let line = after.split('\n').next().unwrap_or_default();
            step.background = line.trim_end().ends_with('&') && !line.trim_end().ends_with("&&");
            steps.push(step);
        }
    }
    steps
}

/// The end of the text in quotes that a command is in, else of the body.
fn limit(body: &str, classes: &[Class], at: usize) -> usize {
    if classes[at] != Class::Double {
        return body.len();
    }
    let mut ends = body[at..].match_indices('"').map(|(end, _)| at + end);
    ends.find(|&end| !body[..end].ends_with('\\')).unwrap_or(body.len())
}

/// Whether a word is an option, or a variable of options.
fn is_option(body: &str, word: &Word) -> bool {
    match &word.pieces[..] {
        [Piece::Text(text), ..] => text.starts_with('-') && text.len() > 1,
        [Piece::Variable(name)] => assigned(body, name).is_some_and(|value| value.starts_with('-')),
        [Piece::Other(text)] => {
            let name = text.trim_start_matches("${").split(['[', ':', '}']).next().unwrap_or_default();
            assigned(body, name).is_some_and(|value| value.starts_with('-'))
        }
        _ => false,
    }
}

/// The value that a script assigns to a variable, without quotes and blanks before it.
pub(super) fn assigned<'b>(body: &'b str, name: &str) -> Option<&'b str> {
    let line = body.lines().find_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        line.strip_prefix(name)?.strip_prefix('=')
    })?;
    let at = line.as_ptr() as usize - body.as_ptr() as usize;
    Some(body[at..].trim_start_matches(['"', '\'', '(', ' ', '\t', '\\', '\n']))
}

fn option(
    word: &Word,
    rest: &mut std::iter::Peekable<impl Iterator<Item = Word>>,
    span: &impl Fn(Range<usize>) -> Span,
    draft: &mut Draft<'_>,
) -> Option<StepOption> {
    let text = word.text();
    let here = span(word.range.clone());
    let (name, argument, given) = if let Some(long) = text.strip_prefix("--") {
        let (name, value) =
            long.split_once('=').map_or((long, None), |(name, _)| (name, Some(name.len() + 3)));
        let own = OF_SRUN.iter().find(|(own, ..)| *own == name).map(|(own, _, argument)| (*own, *argument));
        let Some((name, argument)) =
            own.or_else(|| by_name(name).ok().map(|option| (option.long, option.argument)))
        else {
            draft.invalid(here, format!("unknown option `--{name}` of srun"), "");
            return None;
        };
        (name, argument, value)
    } else {
        let letter = text.chars().nth(1)?;
        let own =
            OF_SRUN.iter().find(|(_, own, _)| *own == letter).map(|(own, _, argument)| (*own, *argument));
        let Some((name, argument)) =
            own.or_else(|| by_letter(OPTIONS, letter).map(|option| (option.long, option.argument)))
        else {
            draft.invalid(here, format!("unknown option `-{letter}` of srun"), "");
            return None;
        };
        // Letters without an argument may follow one another: `-lu`.
        let value = (text.len() > 2 && argument != Argument::None).then_some(2);
        (name, argument, value)
    };
    let range = word.range.clone();
    let value = match (given, argument) {
        (Some(bytes), _) => word.after(bytes),
        (None, Argument::Required) => {
            let Some(next) = rest.next() else {
                draft.invalid(here, format!("`--{name}` needs a value"), "");
                return None;
            };
            return Some(StepOption { name, span: span(range.start..next.range.end), value: next });
        }
        (None, _) => Word::plain("", range.clone()),
    };
    Some(StepOption { name, value, span: span(range) })
}
