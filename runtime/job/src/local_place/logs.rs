//! The output of tasks on this host, as every place shows it.

use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use jobc_place::logs::{LogItem, LogOutput, LogRequest};
use jobc_place::time::Time;
use jobc_sys::error::{AtPath as _, Result};

use super::tasks;
use crate::directory::Directory;
use crate::logs::{LineFilter, Reader, Watch};
use crate::record::Record;

/// How often to check whether the job has ended.
const MAX_SLEEP: Duration = Duration::from_millis(200);

/// Lines that are written within this time are shown together.
const BATCH_INTERVAL: Duration = Duration::from_millis(15);

/// Reads what there is, and with `follow` what comes until the job has ended.
pub(super) fn show(
    directory: &Directory,
    request: &LogRequest,
    has_ended: &dyn Fn() -> Result<bool>,
    output: LogOutput<'_>,
) -> Result<()> {
    let tasks = tasks::named(&Record::require(directory)?, &request.tasks)?;
    let names: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    let logs: Vec<_> = tasks.iter().map(|task| directory.logs(task)).collect();
    let since = request.since.as_deref().and_then(Time::parse);
    let filter = LineFilter::default().tail(request.tail).since(since).attempt(request.attempt);
    let watched = [directory.record.clone(), directory.record.join("logs")].into_iter().chain(logs.clone());
    let mut watch = Watch::new(watched.filter(|_| request.follow));
    let mut reader = Reader::new(logs, filter);
    loop {
        // What was written before the end is read after it.
        let is_last = !request.follow || has_ended()?;
        let mut flow = ControlFlow::Continue(());
        let mut more = true;
        while more {
            let read = reader.read(&mut |number, line| {
                flow = output(LogItem::Line { task: &names[number], line: *line });
                if flow.is_break() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
            });
            if flow.is_break() {
                return Ok(());
            }
            more = read.at_path("read", directory.record.join("logs"))?;
        }
        if is_last || output(LogItem::Idle).is_break() {
            return Ok(());
        }
        watch.wait(&[], MAX_SLEEP).at_path("watch", &directory.record)?;
        std::thread::sleep(BATCH_INTERVAL);
    }
}
