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
const BEFORE: [&str; 13] =
    ["then", "do", "else", "elif", "time", "exec", "eval", "nohup", "sudo", "env", "command", "!", "{"];

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
    /// The variables of the script that hold options.
    pub(super) variables: Vec<String>,
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

/// Whether a command begins at a byte.
pub(super) fn begins_command(body: &str, at: usize) -> bool {
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
    BEFORE.contains(&word.rsplit('/').next().unwrap_or_default()) || is_assignment && last != '='
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
                variables: vec![],
                command: String::new(),
                end: words.end,
                background: false,
            };
            while let Some(word) = rest.next_if(|word| is_option(body, word)) {
                let text = word.text();
                if let Some(name) = variable(&word) {
                    step.variables.push(name.to_owned());
                    in_variable((body, classes), name, &span, span(word.range.clone()), &mut step, draft);
                    continue;
                }
                if text == "--" {
                    break;
                }
                if let Some(option) = option(&word, &mut rest, &span, draft) {
                    step.options.push(option);
                }
            }
            of_environment(body, &span, &mut step);
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
    match variable(word) {
        Some(name) => assignments(body, name).any(|(value, _)| value.starts_with('-')),
        None => {
            matches!(&word.pieces[..], [Piece::Text(text), ..] if text.starts_with('-') && text.len() > 1)
        }
    }
}

/// The name of the variable that a word is: `$NAME`, `${NAME:-x}`, `"${NAME[@]}"`.
fn variable(word: &Word) -> Option<&str> {
    match &word.pieces[..] {
        [Piece::Variable(name)] => Some(name),
        [Piece::Other(text)] => text.strip_prefix("${")?.split(['[', ':', '}']).next(),
        _ => None,
    }
}

/// Reads options of `srun` that the script has in a variable: `ARGS=(--container-image $IMAGE)`.
fn in_variable(
    (body, classes): (&str, &[Class]),
    name: &str,
    span: &impl Fn(Range<usize>) -> Span,
    used: Span,
    step: &mut Step,
    draft: &mut Draft<'_>,
) {
    draft.note(used, "options of `srun` in a variable: jobc starts the tasks");
    let with_options: Vec<(&str, bool)> =
        assignments(body, name).filter(|(value, _)| value.starts_with('-')).collect();
    for (value, is_certain) in with_options {
        let from = value.as_ptr() as usize - body.as_ptr() as usize;
        let to = end_of_value(body, classes, from);
        if !is_certain {
            let text = value.split(['=', ' ', '\n', '"', ')']).next().unwrap_or_default();
            draft.changed(
                span(from..from + text.len()),
                format!("`srun` has the option `{text}` in one case of the script: it is not read"),
                "write it behind `srun`, or write what it is for into the job file",
            );
            continue;
        }
        let mut at = from;
        while at < to {
            let Ok(words) = split(&body[..to], at) else { break };
            at = words.end + 1;
            let mut rest = words.words.into_iter().peekable();
            while let Some(word) = rest.next() {
                // A value on a line of its own is a word of the option before it.
                if word.text().starts_with('-')
                    && let Some(option) = option(&word, &mut rest, span, draft)
                {
                    step.options.push(option);
                }
            }
        }
    }
}

/// Where the value of an assignment ends, of which `from` is the first byte behind quotes and brackets.
fn end_of_value(body: &str, classes: &[Class], from: usize) -> usize {
    let before = body[..from].trim_end_matches([' ', '\t', '\n', '\\']);
    let ends = |found: &dyn Fn(usize) -> bool| (from..body.len()).find(|at| found(*at)).unwrap_or(body.len());
    match before.chars().next_back() {
        Some('(') => ends(&|at| body.as_bytes()[at] == b')' && classes[at] == Class::Code),
        Some(quote @ ('"' | '\'')) => {
            ends(&|at| body[at..].starts_with(quote) && !body[..at].ends_with('\\'))
        }
        _ => ends(&|at| body.as_bytes()[at].is_ascii_whitespace()),
    }
}

/// Variables that `srun` reads where it has no such option.
const INPUT: [(&str, &str); 10] = [
    ("SLURM_CPUS_PER_TASK", "cpus-per-task"),
    ("SLURM_GPUS_PER_NODE", "gpus-per-node"),
    ("SLURM_GPUS_PER_TASK", "gpus-per-task"),
    ("SLURM_JOB_NUM_NODES", "nodes"),
    ("SLURM_MPI_TYPE", "mpi"),
    ("SLURM_NNODES", "nodes"),
    ("SLURM_NPROCS", "ntasks"),
    ("SLURM_NTASKS", "ntasks"),
    ("SLURM_NTASKS_PER_NODE", "ntasks-per-node"),
    ("SRUN_CPUS_PER_TASK", "cpus-per-task"),
];

/// Adds the options that the script sets for `srun` as variables.
fn of_environment(body: &str, span: &impl Fn(Range<usize>) -> Span, step: &mut Step) {
    for (variable, name) in INPUT {
        let Some(value) = assigned(&body[..step.range.start], variable) else { continue };
        let value = value.split(['"', '\'', '\n', ' ', '\t', ';', ')']).next().unwrap_or_default();
        if step.option(name).is_none() && !value.is_empty() && !value.contains('$') {
            let at = value.as_ptr() as usize - body.as_ptr() as usize;
            let range = at..at + value.len();
            step.options.push(StepOption {
                name,
                value: Word::plain(value, range.clone()),
                span: span(range),
            });
        }
    }
}

/// The value that a script assigns to a variable, without quotes and blanks before it.
pub(super) fn assigned<'b>(body: &'b str, name: &str) -> Option<&'b str> {
    assignments(body, name).next().map(|(value, _)| value)
}

/// Whether a script assigns to a variable on a line before a byte.
pub(super) fn is_assigned_before(body: &str, name: &str, at: usize) -> bool {
    let line = body[..at].rfind('\n').map_or(0, |end| end + 1);
    assigned(&body[..line], name).is_some()
}

/// The values that a script assigns to a variable, without quotes and blanks before them, and whether it always does.
fn assignments<'b>(body: &'b str, name: &str) -> impl Iterator<Item = (&'b str, bool)> {
    body.lines().filter_map(move |whole| {
        let line = ["export ", "declare -a ", "declare ", "local ", "readonly "]
            .into_iter()
            .fold(whole.trim_start(), |line, word| line.strip_prefix(word).unwrap_or(line).trim_start());
        let line = line.strip_prefix(name)?;
        let line = line.strip_prefix('+').unwrap_or(line).strip_prefix('=')?;
        let at = line.as_ptr() as usize - body.as_ptr() as usize;
        let value = body[at..].trim_start_matches(['"', '\'', '(', ' ', '\t', '\\', '\n']);
        Some((value, !whole.starts_with([' ', '\t'])))
    })
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
