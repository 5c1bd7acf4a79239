//! The command of a direct script's `srun`: the user's own, where possible without a shell that stays.

use std::fmt::Write as _;

use jobc_schema::plan::{CommandPlan, EnvPlan, GpuAmount, Piece, RolePlan, Text};
use jobc_schema::preemption::{ATTEMPT, RESUME};
use jobc_schema::shell::quote;

use crate::backend::signals::{self, Way};

use super::parts::Parts;
use super::text::{Shell, Texts};
use super::{role as role_script, run};

const TEXT: &str = "an instance's own number or address is in a text where a shell cannot put it";
const SHELL: &str = "a shell has to pass SIGTERM on to the programs of its script";

/// Stands for a placeholder where only the form of a script matters.
const MARK: &str = "$X";

/// Stands for lines before a script.
const BEFORE: &str = "export X\n";

/// What a task runs, and the variables that it gets from the batch script.
pub(super) struct Command {
    /// Assignments, each `NAME=WORD`.
    pub(super) exports: Vec<String>,
    /// The words after the options of `srun`, and of its container.
    pub(super) words: String,
}

/// The command of a role; otherwise why jobc has to run it.
pub(super) fn of(parts: &Parts<'_>, role: &RolePlan) -> Result<Command, &'static str> {
    let texts = Texts { parts, role };
    let (mut exports, mut own) = (vec![], vec![]);
    let mut add = |name: &str, value: &Text| -> Result<(), &'static str> {
        // Also what a task expands is expanded by this script where all tasks have the same.
        if let Some(word) = texts.word(value, Shell::Batch) {
            exports.push(format!("{name}={word}"));
            return Ok(());
        }
        let word = texts.word(value, Shell::Task).ok_or("a list of addresses is made for each task")?;
        own.push(format!("{name}={word}"));
        Ok(())
    };
    let is_counted = |name: &str| [ATTEMPT, RESUME].contains(&name) || role.env.contains_key(name);
    for (name, value) in role.provided_env.iter().filter(|(name, _)| !is_counted(name)) {
        add(name, value)?;
    }
    for (name, value) in &role.env {
        if let EnvPlan::Text(text) = value {
            add(name, text)?;
        }
    }
    let hidden = role.resources.gpu.as_ref().is_some_and(|gpu| gpu.amount() == GpuAmount::Hidden);
    if hidden {
        own.push("CUDA_VISIBLE_DEVICES= NVIDIA_VISIBLE_DEVICES=void ROCR_VISIBLE_DEVICES=".to_owned());
    }
    let mut prelude = String::new();
    if !own.is_empty() {
        let _ = writeln!(prelude, "export {}", own.join(" "));
    }
    let limits = role_script::limits(role);
    for limit in &limits {
        let _ = writeln!(prelude, "{limit}");
    }
    let words = words(texts, &prelude, !limits.is_empty())?;
    Ok(Command { exports, words })
}

/// The words of the command, after what the shell of each task does first.
fn words(texts: Texts<'_>, prelude: &str, needs_bash: bool) -> Result<String, &'static str> {
    if let CommandPlan::Script { shell, setup, script } = &texts.role.command
        && let Some(program) = signals::shell(texts.role)
        && texts.role.preflight.is_empty()
    {
        let mut whole = setup.clone().unwrap_or_default();
        if setup.is_some() {
            whole.push_str("\n");
        }
        whole.push_text(script);
        // A shell that does something before becomes its program only by `exec`.
        let before = if prelude.is_empty() { "" } else { BEFORE };
        let body = body(texts, &whole, program, before)?;
        let shell = shell.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        let between = if prelude.is_empty() && !body.trim_end().contains('\n') { "" } else { "\n" };
        let text = format!("{between}{prelude}{}{between}", body.trim_end_matches('\n'));
        return Ok(format!("{shell} {}", quote(&text)));
    }
    let argv = run::argv(texts.parts.job, texts.role);
    let all = |shell: Shell| argv.iter().map(|text| texts.word(text, shell)).collect::<Option<Vec<_>>>();
    let shell = if needs_bash { "bash" } else { "sh" };
    match all(Shell::Batch) {
        Some(words) if prelude.is_empty() => Ok(words.join(" ")),
        Some(words) => {
            let text = format!("{prelude}exec \"$@\"");
            Ok(format!("{shell} -c {} {shell} {}", quote(&text), words.join(" ")))
        }
        None => {
            let words = all(Shell::Task).ok_or(TEXT)?;
            Ok(format!("{shell} -c {}", quote(&format!("{prelude}exec {}", words.join(" ")))))
        }
    }
}

/// The user's script as the shell of a task reads it, which becomes its last program where it can.
fn body(texts: Texts<'_>, script: &Text, program: &str, before: &str) -> Result<String, &'static str> {
    let plain = before.to_owned() + &script.render(|_| MARK.to_owned());
    let at = match signals::way(program, &plain, "TERM") {
        Way::Itself => None,
        Way::Exec(at) => Some(at - before.len()),
        Way::PassOn => return Err(SHELL),
    };
    let (mut out, mut seen, mut place) = (String::new(), 0, Quote::None);
    for piece in script.pieces() {
        match piece {
            Piece::Literal(text) => {
                place = place.after(text);
                match at.and_then(|at| at.checked_sub(seen)).and_then(|at| text.split_at_checked(at)) {
                    Some((before, after)) if !after.is_empty() => {
                        out.push_str(before);
                        out.push_str("exec ");
                        out.push_str(after);
                    }
                    _ => out.push_str(text),
                }
                seen += text.len();
            }
            Piece::Reference(reference) => {
                let value = texts.value(reference, Shell::Task).ok_or(TEXT)?;
                match (value.strip_prefix('$'), place) {
                    (None, _) => out.push_str(&value),
                    (Some(_), Quote::Here) => return Err(TEXT),
                    (Some(_), Quote::Single) => {
                        let _ = write!(out, "'\"{value}\"'");
                    }
                    (Some(sum), _) if sum.starts_with('(') => out.push_str(&value),
                    (Some(name), _) => {
                        let _ = write!(out, "${{{name}}}");
                    }
                }
                seen += MARK.len();
            }
        }
    }
    Ok(out)
}

/// Where in a script of a shell a text ends.
#[derive(Clone, Copy, PartialEq)]
enum Quote {
    None,
    Single,
    Double,
    Comment,
    /// Maybe in a here-document, whose end tells how it is read.
    Here,
}

impl Quote {
    /// After more text.
    fn after(self, text: &str) -> Self {
        if self == Self::Here || text.contains("<<") {
            return Self::Here;
        }
        let (mut now, mut before) = (self, ' ');
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            now = match (now, c) {
                (Self::None | Self::Double, '\\') => {
                    chars.next();
                    now
                }
                (Self::None, '\'') => Self::Single,
                (Self::None, '"') => Self::Double,
                (Self::None, '#') if before.is_whitespace() => Self::Comment,
                (Self::Single, '\'') | (Self::Double, '"') | (Self::Comment, '\n') => Self::None,
                _ => now,
            };
            before = c;
        }
        now
    }
}
