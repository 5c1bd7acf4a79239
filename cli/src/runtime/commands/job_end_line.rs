//! How a job ended, in one line.

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
    terminal::print(&format!("{red}{id}: {}{plain}\n", escape_control(&job.end_text())));
}

/// The verdict on a job that has failed, with the next step; nothing without a step to take.
pub(super) fn verdict(job: &JobSummary) -> Option<String> {
    let verdict = job.end.as_ref()?.verdict.as_ref()?;
    Some(escape_control(&format!("{}; {}", verdict.kind, verdict.next.as_ref()?)))
}
