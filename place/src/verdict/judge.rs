//! From what is known of an ended attempt to the verdict on it.

use super::known::{self, PlaceWord, Sentence};
use super::{Judgment, Verdict};
use crate::{exit_code, exit_text};

/// The most of a line that is kept as evidence, in characters.
const MAX_LINE_CHARS: usize = 300;

/// The exit codes of a program that cannot be executed.
const NO_PROGRAM: [u8; 2] = [exit_code::NOT_EXECUTABLE, exit_code::NOT_FOUND];

/// What to do then.
const CORRECT_PROGRAM: &str = "correct the command, or install its program in the image";

/// Why jobc ended an attempt that had not ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A time limit was reached.
    TimeLimit,
    /// It was not ready in time.
    NotReady,
    /// It made no progress.
    Stall,
    /// It was asked to leave, and is to be resumed.
    Preempted,
}

/// A fault of a device of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFault {
    /// The device and what happened: `GPU 2: XID 79: it has fallen off the bus`.
    pub what: String,
    /// What to do next.
    pub next: String,
}

/// What is known of an ended attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its exit code; 128 and the signal's number for a signal.
    pub exit_code: Option<u8>,
    /// The signal that ended its first process, such as `SIGSEGV`.
    pub signal: Option<String>,
    /// What the place says of the end, as text: `out of memory: used 2 GiB of 2 GiB`.
    pub reason: Option<String>,
    /// The place's word for the end: `OOMKilled`, `NODE_FAIL`.
    pub word: Option<String>,
    /// Processes of it that the kernel killed for lack of memory.
    pub oom_kills: u64,
    /// Why jobc ended it, if it did.
    pub cut: Option<Cut>,
    /// What happened to a device of it meanwhile.
    pub fault: Option<NodeFault>,
    /// It has GPUs.
    pub has_gpus: bool,
    /// Its program did not run.
    pub is_unstarted: bool,
    /// The last lines of its log, the oldest first.
    pub lines: Vec<String>,
}

/// Judges an ended attempt. The first of these that is known decides: what jobc did, a success, the kernel's counters,
/// the place's word, a fault of a device, a known line of the log, the signal, the exit code.
pub fn judge(facts: &Facts) -> Judgment {
    let mut evidence: Vec<String> = facts.reason.clone().into_iter().collect();
    let end = exit_text::describe(facts.exit_code, facts.signal.as_deref(), None);
    if let Some(cut) = facts.cut {
        let (kind, next) = of_cut(cut);
        return Judgment { kind, evidence, next: Some(next.to_owned()) };
    }
    if facts.exit_code == Some(exit_code::SUCCEEDED) && !facts.is_unstarted {
        return Judgment { kind: Verdict::Success, evidence: vec![], next: None };
    }
    evidence.extend(end.filter(|_| !facts.is_unstarted));
    let by = |kind: Verdict, evidence: Vec<String>, next: &str| Judgment {
        kind,
        evidence,
        next: Some(next.to_owned()),
    };
    if is_out_of_memory(facts) {
        if facts.reason.is_none() {
            evidence.insert(0, format!("the kernel killed {} of its processes", facts.oom_kills));
        }
        let next = "raise `resources.memory`, or use less: fewer workers, smaller batches";
        return by(Verdict::OutOfMemory, evidence, next);
    }
    if let Some(PlaceWord { verdict, next, .. }) = facts.word.as_deref().and_then(known::word) {
        evidence.retain(|text| facts.word.as_ref() != Some(text));
        evidence.insert(0, facts.word.clone().unwrap_or_default());
        return by(*verdict, evidence, next);
    }
    if let Some(NodeFault { what, next }) = &facts.fault {
        evidence.push(what.clone());
        return by(Verdict::Node, evidence, next);
    }
    if let Some((Sentence { verdict, next, .. }, line)) =
        known::sentence(&facts.lines, facts.exit_code, facts.has_gpus)
    {
        evidence.push(shortened(line));
        return by(*verdict, evidence, next);
    }
    if facts.is_unstarted {
        let why: Vec<String> = facts.reason.clone().into_iter().collect();
        if let Some((Sentence { verdict, next, .. }, _)) =
            known::sentence(&why, facts.exit_code, facts.has_gpus)
        {
            return by(*verdict, evidence, next);
        }
        return match facts.exit_code {
            Some(code) if NO_PROGRAM.contains(&code) => by(Verdict::UserError, evidence, CORRECT_PROGRAM),
            _ => by(Verdict::Infrastructure, evidence, "`jobc doctor` checks what this host can do"),
        };
    }
    let signal = facts.signal.as_deref().map(str::to_owned).or_else(|| signal_of_shell(facts.exit_code));
    let (kind, next) = match signal.as_deref() {
        // The table has nothing to add to a program's own code.
        None if facts.exit_code.is_some_and(|code| !NO_PROGRAM.contains(&code)) => {
            return Judgment { kind: Verdict::UserError, evidence, next: None };
        }
        Some("SIGKILL") => (
            Verdict::Infrastructure,
            "find who killed it, as jobc did not: another user, an administrator, or the kernel (`journalctl -k`)",
        ),
        Some("SIGTERM" | "SIGINT" | "SIGHUP" | "SIGQUIT") => {
            (Verdict::Infrastructure, "find who sent the signal, as jobc did not: a user or the platform")
        }
        Some("SIGBUS") => {
            (Verdict::UserError, "raise `resources.shm` if it uses /dev/shm, as data loaders do")
        }
        Some(_) => {
            (Verdict::UserError, "run it with `PYTHONFAULTHANDLER=1` in `env`, which prints where it crashed")
        }
        None if facts.exit_code.is_some() => (Verdict::UserError, CORRECT_PROGRAM),
        None => (Verdict::Infrastructure, "`jobc events` has what the platform says"),
    };
    by(kind, evidence, next)
}

/// Whether the last lines of a failed attempt say that a peer was gone, whose own end is the cause.
pub fn is_consequence(lines: &[String], exit_code: u8) -> bool {
    known::sentence(lines, Some(exit_code), false).is_some_and(|(sentence, _)| sentence.is_consequence)
}

/// Whether the last lines of a failed attempt say that it has failed before its command, by a check.
pub fn is_preflight(lines: &[String], exit_code: u8) -> bool {
    known::sentence(lines, Some(exit_code), false).is_some_and(|(sentence, _)| sentence.is_preflight)
}

fn of_cut(cut: Cut) -> (Verdict, &'static str) {
    match cut {
        Cut::TimeLimit => (Verdict::Timeout, "raise `timeout`, or save checkpoints and continue from them"),
        Cut::NotReady => (Verdict::Timeout, "see its last lines, or raise `ready.timeout`"),
        Cut::Stall => (Verdict::Stall, "`jobc events` has what was seen of each task before it was ended"),
        Cut::Preempted => (Verdict::Preempted, "it is resumed when there is room"),
    }
}

fn is_out_of_memory(facts: &Facts) -> bool {
    facts.oom_kills > 0 || facts.reason.as_deref().is_some_and(says_out_of_memory)
}

/// Whether what this host says of an end is that the kernel killed processes for lack of memory.
pub fn says_out_of_memory(reason: &str) -> bool {
    reason.starts_with("out of memory")
}

/// The signal that ended the last command of a shell, which exits with 128 and its number.
fn signal_of_shell(code: Option<u8>) -> Option<String> {
    let number = i32::from(code?.checked_sub(128)?);
    // Others are more likely a program's own codes.
    [1, 2, 3, 4, 6, 7, 8, 9, 11, 15, 31].contains(&number).then(|| exit_text::signal_name(number))
}

fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
