//! `jobc doctor`: what this machine can do, and how to get what is missing.

use std::path::Path;
use std::process::Command;

use jobc_doctor::machine::As;
use jobc_doctor::{Finding, Machine as _, Report, Status, ThisMachine, examine, probe};

use crate::args::{Args, FormatArg};
use crate::outcome::Outcome;
use crate::terminal;

pub(crate) fn run(args: &Args) -> Outcome {
    if let FormatArg::Sarif | FormatArg::Github = args.format {
        terminal::eprint(
            "jobc: a report on a machine is neither SARIF nor annotations, which belong to lines of files; write `--format json`, `short` or `text`\n",
        );
        return Outcome::WrongUse;
    }
    let report = examine(ThisMachine::new(PROBER.map(Into::into)));
    terminal::print(&match args.format {
        FormatArg::Json => jobc_compiler::emit::to_json(&report),
        FormatArg::Short => report.checks.iter().map(short).collect::<String>() + &report.summary() + "\n",
        _ => text(&report),
    });
    if report.can_run() { Outcome::Fine } else { Outcome::Errors }
}

/// Tries to make an overlay over a folder as containers get one; or why there is none. Paths that a step cannot name are not
/// tried.
pub(crate) fn overlay_over(folder: &Path) -> Result<(), String> {
    let Some(path) = folder.to_str().filter(|path| !path.contains(',')) else { return Ok(()) };
    let machine = ThisMachine::new(PROBER.map(Into::into));
    let steps = if rustix::process::geteuid().is_root() {
        format!("mount,overlay={path}")
    } else {
        format!("user,mount,user-overlay={path}")
    };
    machine.attempt(&steps, As::Me).map(drop)
}

/// The command that carries out the steps added to it: this very program, whatever became of its path.
const PROBER: [&str; 3] = ["/proc/self/exe", "doctor", "--probe"];

/// Carries out the steps of one try, for the `jobc doctor` that started this process.
pub(crate) fn run_probe(steps: &str) -> Outcome {
    let mut again = || {
        let mut command = Command::new(PROBER[0]);
        command.args(&PROBER[1..]);
        command
    };
    match probe::run(steps, &mut again) {
        Ok(text) => {
            terminal::print(&text);
            Outcome::Fine
        }
        Err(why) => {
            terminal::eprint(&format!("{why}\n"));
            Outcome::Errors
        }
    }
}

/// All checks below their subjects, each with what it saw; where something is missing, what for and what would help.
fn text(report: &Report) -> String {
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    let mut subject = "";
    for check in &report.checks {
        if check.subject != subject {
            let gap = if subject.is_empty() { "" } else { "\n" };
            out += &format!("{gap}{BOLD}{}{PLAIN}\n", check.subject);
            subject = check.subject;
        }
        let (word, colour) = word(check);
        out += &format!("  {colour}{word:7}{PLAIN}  {:width$}  {}\n", check.name, check.found);
        // What nobody needs and nobody can change, as a GPU that is not there, is said without more ado.
        if check.status != Status::Ok && (check.needed || !check.fix.is_empty()) {
            let margin = " ".repeat(width + 13);
            out += &format!("{margin}for {}\n", check.purpose);
            out.extend(check.fix.iter().map(|fix| format!("{margin}fix: {fix}\n")));
        }
    }
    out + &format!("\n{BOLD}{}{PLAIN}\n", report.summary())
}

/// A check in a line.
fn short(check: &Finding) -> String {
    format!("{}: {}: {}\n", check.name, word(check).0, check.found)
}

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// The word and the colour of a check: only what is needed and missing is alarming.
fn word(check: &Finding) -> (&'static str, &'static str) {
    match check.status {
        Status::Ok => ("ok", "\x1b[32m"),
        Status::Limited => ("limited", "\x1b[33m"),
        Status::Missing if check.needed => ("missing", "\x1b[1;31m"),
        Status::Missing => ("missing", "\x1b[33m"),
    }
}
