//! How a job ended, in one line.

use jobc_place::job::JobSummary;
use jobc_place::state::JobState;
use serde_json::{Value, json};

use crate::args::FormatArg;
use crate::table::escape_control;
use crate::terminal;

/// Prints how a job ended.
pub(crate) fn print(format: FormatArg, id: &str, job: &JobSummary) {
    if format == FormatArg::Json {
        terminal::print(&format!("{}\n", json_of(id, job)));
        return;
    }
    let failed = !matches!(job.state, JobState::Succeeded | JobState::Stopped);
    let is_colored = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    let (red, plain) = if failed && is_colored { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
    terminal::print(&format!("{red}{id}: {}{plain}\n", escape_control(&job.end_text())));
}

/// A job for programs. What every job has is there even where it is not known.
pub(crate) fn json_of(id: &str, job: &JobSummary) -> Value {
    let mut value = json!(job);
    value["id"] = id.into();
    if let Some((target, _)) = id.split_once('/') {
        value["handle"] = id.into();
        value["target"] = target.into();
    }
    if !job.states.is_empty() {
        value["tasks"] = job.states.iter().map(|(state, count)| (*state, *count)).collect();
    }
    for key in ["sweep", "description", "source", "target", "submitted", "started", "ended", "end"] {
        if value.get(key).is_none() {
            value[key] = Value::Null;
        }
    }
    value
}
