//! The output of the tasks of a job, read in turns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};

use super::api::Detail;
use super::attempts::{Attempt, History};
use super::client::Client;
use super::output::{Output, Reader};
use super::state::of_detail;
use super::status::ApiError;
use crate::place::{LogItem, LogRequest};

/// Attempts that are followed at the same time: each is asked for new output in every turn.
const MAX_FOLLOWED: usize = 256;
/// From one turn to the next. A server allows 600 requests a minute (pai, `src/rest-server/src/config/rate-limit.js`);
/// those for output do not count.
const INTERVAL: Duration = Duration::from_secs(2);

/// An item of output that outlives the reading of it.
enum TailItem {
    Line(Vec<u8>),
    Remark(String),
}

/// Passes the output of the chosen tasks on, until the job has ended if it is followed. `path` is that of the job.
pub(crate) fn logs(
    client: &Client,
    path: &str,
    request: &LogRequest,
    output: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    if request.since.is_some() {
        let error = Error::new(Kind::Unsupported, "OpenPAI does not record when lines were written");
        return Err(error.help("use `--tail` instead of `--since`"));
    }
    let failed = |error: ApiError| error.into_error("read the output of the job");
    let mut history = History::default();
    let mut readers: BTreeMap<(String, u32), Reader> = BTreeMap::new();
    loop {
        let job: Detail = client.get(path).map_err(failed)?;
        let has_ended = of_detail(&job).state.is_final();
        let attempts = history.attempts(client, &job).map_err(failed)?;
        // Without tasks nothing is known of them yet.
        if !attempts.is_empty() {
            check_tasks(&attempts, &request.tasks)?;
        }
        let chosen: Vec<&Attempt> =
            attempts.iter().filter(|attempt| attempt.has_started() && is_chosen(attempt, request)).collect();
        let is_open = |attempt: &&&Attempt| !attempt.has_ended();
        if request.follow && chosen.iter().filter(is_open).count() > MAX_FOLLOWED {
            let message = format!("cannot follow more than {MAX_FOLLOWED} tasks at the same time");
            let error = Error::new(Kind::Unsupported, message);
            return Err(error.help("name tasks or roles, as in `jobc logs -f TARGET/NAME train-0`"));
        }
        for attempt in chosen {
            let reader = readers.entry((attempt.task(), attempt.number)).or_default();
            if reader.is_done {
                continue;
            }
            if turn(client, attempt, reader, has_ended || !request.follow, request.tail, output).is_break() {
                return Ok(());
            }
        }
        if has_ended || !request.follow || output(LogItem::Idle).is_break() {
            return Ok(());
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Shows what is new of an attempt; of the first lines, only as many as requested.
fn turn(
    client: &Client,
    attempt: &Attempt,
    reader: &mut Reader,
    is_last: bool,
    tail: Option<u64>,
    output: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let list = attempt.status.container_log.as_deref().unwrap_or_default();
    let max = tail
        .filter(|_| reader.is_new())
        .map_or(usize::MAX, |tail| usize::try_from(tail).unwrap_or(usize::MAX));
    let mut kept: VecDeque<TailItem> = VecDeque::new();
    let mut keep = |item: Output<'_>| {
        kept.push_back(match item {
            Output::Line(line) => TailItem::Line(line.to_vec()),
            Output::Remark(text) => TailItem::Remark(text.to_owned()),
        });
        if kept.len() > max {
            kept.pop_front();
        }
    };
    // The state of the attempt is older than this: what it wrote before its end is there.
    let polled = reader.poll(client, list, &mut keep);
    if let Err(error) = polled {
        keep(Output::Remark(&error.into_error("read its output").message));
        reader.is_done = is_last || attempt.has_ended();
    } else if is_last || attempt.has_ended() {
        reader.finish(&mut keep);
    }
    let task = attempt.task();
    for item in &kept {
        let item = match item {
            TailItem::Line(text) => LogItem::Line { task: &task, attempt: attempt.number, time: "", text },
            TailItem::Remark(text) => LogItem::Remark { task: &task, text },
        };
        output(item)?;
    }
    ControlFlow::Continue(())
}

fn is_chosen(attempt: &Attempt, request: &LogRequest) -> bool {
    request.attempt.is_none_or(|number| number == attempt.number)
        && (request.tasks.is_empty() || request.tasks.iter().any(|word| attempt.is_named(word)))
}

/// Every word must name a task or a role.
fn check_tasks(attempts: &[Attempt], words: &[String]) -> Result<()> {
    let roles: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.role.as_str()).collect();
    for word in words {
        if !attempts.iter().any(|attempt| attempt.is_named(word)) {
            let roles: Vec<String> = roles.iter().map(|role| format!("`{role}`")).collect();
            return Err(Error::new(Kind::NotFound, format!("the job has no task `{word}`")).help(format!(
                "name a role, {}, or a task of it, such as `{}`",
                roles.join(" or "),
                attempts[0].task()
            )));
        }
    }
    Ok(())
}
