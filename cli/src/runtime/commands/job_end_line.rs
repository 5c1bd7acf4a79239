//! How a job ended, in one line, and the verdict on it.

use jobc_place::job::JobSummary;
use jobc_place::output::ListedJob;
use jobc_place::state::JobState;
use serde_json::json;

use crate::args::FormatArg;
use crate::table::escape_control;
use crate::terminal;

/// Prints how a job ended.
pub(crate) fn print(format: FormatArg, id: &str, job: &JobSummary) {
    if format == FormatArg::Json {
        terminal::print(&format!("{}\n", json!(ListedJob::new(id, job))));
        return;
    }
    let failed = !matches!(job.state, JobState::Succeeded | JobState::Stopped);
    let is_colored = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    let (red, plain) = if failed && is_colored { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
    let line = format!("{red}{id}: {}{plain}\n", escape_control(&job.end_text()));
    terminal::print(&(line + &verdict(job)));
}

/// The verdict on a job that has failed, with the next step, in a line; nothing if there is none.
pub(crate) fn verdict(job: &JobSummary) -> String {
    let Some(verdict) = job.end.as_ref().and_then(|end| end.verdict.as_ref()) else { return String::new() };
    // The first says what the line above says, or the exit code; the last is the line of the log.
    let seen = verdict.evidence.iter().rev().find(|text| !job.end_text().contains(text.as_str()));
    let seen = seen.map(|text| format!(": {}", escape_control(text))).unwrap_or_default();
    let next =
        verdict.next.as_ref().map(|next| format!("\nnext: {}", escape_control(next))).unwrap_or_default();
    format!("verdict: {}{seen}{next}\n", verdict.kind)
}
