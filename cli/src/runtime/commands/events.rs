//! `jobc events`: prints the events of a job.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use jobc_job::event::{self, Event};
use jobc_job::logs::Watch;

use super::follow::output::{OutputStream, OutputStreams, or_exit};
use super::follow::{event_text, read_error};
use super::jobs::{Jobs, Result, name};
use super::logs::follow_until_end;
use super::newest;
use crate::args::FormatArg;
use crate::runtime::args::watch::EventsArgs;

pub(crate) fn run(args: &EventsArgs) -> Result<ExitCode> {
    let (directory, record) = newest::named_or_newest(&Jobs::open()?, name(args.job.as_ref())?)?;
    if args.job.is_none() {
        newest::show_choice(&record.id, &record);
    }
    let width = record.tasks.iter().map(|task| task.task.to_string().len()).max().unwrap_or(0);
    let mut events = event::Reader::new(&directory);
    let mut outputs = OutputStreams::new(false);
    let mut show = || {
        for event in events.read().map_err(read_error)? {
            let line = if args.lines.format == FormatArg::Json {
                serde_json::to_string(&event)?
            } else {
                text(&event, width)
            };
            outputs.select(OutputStream::Stdout)?.extend_from_slice((line + "\n").as_bytes());
        }
        outputs.flush()
    };
    if args.follow {
        let mut watch = Watch::new([directory.record.clone()]);
        follow_until_end(&directory, &mut || {
            show()?;
            watch.wait(&[], Duration::from_secs(1)).map(drop)
        })?;
    }
    let rest: io::Result<()> = show();
    or_exit(rest);
    Ok(ExitCode::SUCCESS)
}

/// One event per line, with its task padded to the longest name:
/// `2026-11-21T13:31:53.250Z  worker-0  started  process 4711`.
fn text(event: &Event, width: usize) -> String {
    let task = event.task.as_ref().map(ToString::to_string).unwrap_or_default();
    let kind = serde_json::to_value(event.event).ok();
    let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default();
    let attempt = event.attempt.filter(|&attempt| attempt > 1).map(|attempt| format!("attempt {attempt}"));
    let words = [attempt, Some(event_text::describe_details(event)).filter(|words| !words.is_empty())];
    let words = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
    format!("{}  {task:width$}  {kind:13}  {words}", event.time).trim_end().to_owned()
}
