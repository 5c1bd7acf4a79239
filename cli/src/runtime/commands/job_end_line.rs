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
