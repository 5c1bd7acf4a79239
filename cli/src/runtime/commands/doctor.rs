//! `jobc doctor`: checks what this host supports, and suggests fixes.

mod fix;

use std::path::Path;

use jobc_doctor::host::RunAs;
use jobc_doctor::{Finding, Host as _, LocalHost, Report, Status, examine};

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::runtime::args::doctor::DoctorArgs;
use crate::terminal;

pub(crate) fn run(args: &DoctorArgs, format: FormatArg) -> Outcome {
    if args.fix {
        return fix::run(args);
    }
    if let FormatArg::Sarif | FormatArg::Github = format {
        terminal::eprint(
            "jobc: `jobc doctor` has no SARIF or GitHub output, since its checks have no lines; use `--format json`, `short` or `text`\n",
        );
        return Outcome::UsageError;
    }
    let report = examine(LocalHost::here());
    terminal::print(&match format {
        FormatArg::Json => jobc_compiler::emit::to_json(&report),
        FormatArg::Short => report.checks.iter().map(short).collect::<String>() + &report.summary() + "\n",
        _ => text(&report),
    });
    if report.can_run() { Outcome::Success } else { Outcome::Errors }
}

/// Tries to mount an overlay over a directory as containers do; the error is the reason. Paths that a step cannot
/// contain are not tried.
pub(crate) fn try_overlay(directory: &Path) -> Result<(), String> {
    let Some(path) = directory.to_str().filter(|path| !path.contains(',')) else { return Ok(()) };
    let machine = LocalHost::here();
    let steps = if jobc_sys::host::needs_user_namespace() {
        format!("user,mount,user-overlay={path}")
    } else {
        format!("mount,overlay={path}")
    };
    machine.probe(&steps, RunAs::CurrentUser).map(drop)
}

/// All checks by subject, each with its result; if something is missing, also its purpose and how to fix it.
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
        let (word, color) = status_word(check);
        out += &format!("  {color}{word:7}{PLAIN}  {:width$}  {}\n", check.name, check.found);
        // A missing check that is not needed and has no fix, such as an absent GPU, is printed without purpose and fix.
        if check.status != Status::Ok && (check.needed || !check.fix.is_empty()) {
            let margin = " ".repeat(width + 13);
            out += &format!("{margin}for {}\n", check.purpose);
            out.extend(check.fix.iter().map(|fix| format!("{margin}fix: {fix}\n")));
        }
    }
    out + &format!("\n{BOLD}{}{PLAIN}\n", report.summary())
}

/// A check in one line.
fn short(check: &Finding) -> String {
    format!("{}: {}: {}\n", check.name, status_word(check).0, check.found)
}

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// The word and the color of a check; only a missing check that is needed is red.
fn status_word(check: &Finding) -> (&'static str, &'static str) {
    match check.status {
        Status::Ok => ("ok", "\x1b[32m"),
        Status::Limited => ("limited", "\x1b[33m"),
        Status::Missing if check.needed => ("missing", "\x1b[1;31m"),
        Status::Missing => ("missing", "\x1b[33m"),
    }
}
