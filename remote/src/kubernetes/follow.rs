//! The output of all tasks of a job, each pod read by a thread of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use jobc_sys::error::{Error, Kind, Result};

use super::client::Client;
use super::logs::{self, Extent, Output};
use super::objects::{self, ClusterJob};
use super::pods::{self, Pod};
use super::task;
use crate::place::{LogItem, LogRequest};

/// Tasks whose output is followed at the same time: each takes a connection and a thread.
const MAX_FOLLOWED: usize = 256;
/// Tasks whose output is followed without their names.
const MAX_UNNAMED: usize = 100;
/// How often the state of a job is looked at while no output arrives.
const IDLE: Duration = Duration::from_secs(2);
/// How often the pods of a large job are listed again.
const RELIST_INTERVAL: Duration = Duration::from_secs(30);
/// Tasks that are looked for one by one; for more, all pods are listed.
const MAX_NAMED_QUERIES: usize = 16;
/// Lines on their way to the user.
const MAX_QUEUED: usize = 4096;

/// Passes the output of the chosen tasks on, until the job has ended if it is followed.
pub(crate) fn logs(
    client: &Arc<Client>,
    found: &ClusterJob,
    request: &LogRequest,
    output: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let mut known = chosen_pods(client, found, request)?;
    // Without pods nothing is known of the tasks yet.
    if !known.is_empty() {
        check_tasks(&known, &request.tasks)?;
    }
    let limit = if request.tasks.is_empty() { MAX_UNNAMED } else { MAX_FOLLOWED };
    let running = known.iter().filter(|pod| !pod.has_ended() && is_chosen(pod, request)).count();
    if request.follow && running > limit {
        return Err(too_many(running, limit));
    }
    let extent = Extent { follow: request.follow, tail: request.tail, since: request.since.clone() };
    if !request.follow {
        print(client, &known, request, &extent, output);
        return Ok(());
    }
    let (sender, receiver) = sync_channel::<Output>(MAX_QUEUED);
    let mut started: BTreeMap<String, (String, u32)> = BTreeMap::new();
    let mut open = 0_usize;
    let mut looked = Instant::now();
    loop {
        let numbers = pods::attempts(&known);
        for pod in known.iter().filter(|pod| pod.has_started() && is_chosen(pod, request)) {
            let attempt = numbers[pod.metadata.uid.as_str()];
            if started.contains_key(&pod.metadata.uid)
                || request.attempt.is_some_and(|wanted| wanted != attempt)
            {
                continue;
            }
            if open == MAX_FOLLOWED {
                let wanted = known.iter().filter(|pod| pod.has_started() && is_chosen(pod, request)).count();
                return Err(too_many(wanted, MAX_FOLLOWED));
            }
            started.insert(pod.metadata.uid.clone(), (pod.task(), attempt));
            open += 1;
            let client = Arc::clone(client);
            let (pod, extent, sender) = (pod.clone(), extent.clone(), sender.clone());
            std::thread::Builder::new()
                .name("log".to_owned())
                .stack_size(512 << 10)
                .spawn(move || logs::read(&client, &pod, &extent, &sender))
                .map_err(|error| Error::new(Kind::System, format!("cannot create a thread: {error}")))?;
        }
        // New pods are looked for while nothing comes, and at the end of a task, which may be followed by another try.
        loop {
            let item = match receiver.recv_timeout(IDLE) {
                Ok(item) => item,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    if output(LogItem::Idle).is_break() {
                        return Ok(());
                    }
                    break;
                }
            };
            let is_end = matches!(item, Output::End);
            if show(&item, &started, output).is_break() {
                return Ok(());
            }
            if is_end {
                open -= 1;
                break;
            }
        }
        let ended = open == 0 && objects::has_ended(client, found)?;
        if looked.elapsed() < relist_interval(known.len()) && !ended {
            continue;
        }
        looked = Instant::now();
        known = chosen_pods(client, found, request)?;
        let more = known.iter().any(|pod| {
            pod.has_started() && is_chosen(pod, request) && !started.contains_key(&pod.metadata.uid)
        });
        if ended && (!more || request.attempt.is_some()) {
            return Ok(());
        }
    }
}

/// The pods of the tasks that are named, asked for one by one if they are few; or all.
fn chosen_pods(client: &Client, found: &ClusterJob, request: &LogRequest) -> Result<Vec<Pod>> {
    if (1..=MAX_NAMED_QUERIES).contains(&request.tasks.len()) {
        let mut chosen = Vec::new();
        for word in &request.tasks {
            let pods = task::of_labels(client, found, word);
            if pods.is_empty() {
                // A role, an unknown task, or a cluster without these labels.
                return objects::pods(client, found);
            }
            chosen.extend(pods);
        }
        return Ok(chosen);
    }
    objects::pods(client, found)
}

/// How often the pods of a job are listed again: a list of many costs the cluster more.
fn relist_interval(count: usize) -> Duration {
    if count <= MAX_FOLLOWED { Duration::ZERO } else { RELIST_INTERVAL }
}

fn too_many(count: usize, limit: usize) -> Error {
    let message = if limit == MAX_UNNAMED {
        format!("the job has {count} tasks; the output of more than {limit} is followed only by name")
    } else {
        format!("cannot follow {count} tasks at the same time; the maximum is {limit}")
    };
    Error::new(Kind::Unsupported, message)
        .help("name tasks or roles, as in `jobc logs -f TARGET/NAME train-0`")
}

/// The output up to now, task by task.
fn print(
    client: &Arc<Client>,
    pods: &[Pod],
    request: &LogRequest,
    extent: &Extent,
    output: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
) {
    let numbers = pods::attempts(pods);
    let mut chosen: Vec<&Pod> =
        pods.iter().filter(|pod| pod.has_started() && is_chosen(pod, request)).collect();
    chosen.sort_by_key(|pod| (pod.task_order(), numbers[pod.metadata.uid.as_str()]));
    for pod in chosen {
        let attempt = numbers[pod.metadata.uid.as_str()];
        if request.attempt.is_some_and(|wanted| wanted != attempt) {
            continue;
        }
        let names = BTreeMap::from([(pod.metadata.uid.clone(), (pod.task(), attempt))]);
        let (sender, receiver) = sync_channel::<Output>(MAX_QUEUED);
        let client = Arc::clone(client);
        let (pod, extent) = (pod.clone(), extent.clone());
        std::thread::spawn(move || logs::read(&client, &pod, &extent, &sender));
        for item in receiver {
            if show(&item, &names, output).is_break() {
                return;
            }
        }
    }
}

/// Passes an item on under the name of its task.
fn show(
    item: &Output,
    names: &BTreeMap<String, (String, u32)>,
    output: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match item {
        Output::Line { uid, time, text } => match names.get(uid) {
            Some((task, attempt)) => output(LogItem::Line { task, attempt: *attempt, time, text }),
            None => ControlFlow::Continue(()),
        },
        Output::Remark { uid, text } => match names.get(uid) {
            Some((task, _)) => output(LogItem::Remark { task, text }),
            None => ControlFlow::Continue(()),
        },
        Output::End => ControlFlow::Continue(()),
    }
}

fn is_chosen(pod: &Pod, request: &LogRequest) -> bool {
    request.tasks.is_empty() || request.tasks.iter().any(|word| *word == pod.task() || word == pod.role())
}

/// Every word must name a task or a role.
fn check_tasks(pods: &[Pod], words: &[String]) -> Result<()> {
    let roles: BTreeSet<&str> = pods.iter().map(Pod::role).collect();
    for word in words {
        if !pods.iter().any(|pod| *word == pod.task() || word == pod.role()) {
            let roles: Vec<String> = roles.iter().map(|role| format!("`{role}`")).collect();
            return Err(Error::new(Kind::NotFound, format!("the job has no task `{word}`")).help(format!(
                "name a role, {}, or a task of it, such as `{}`",
                roles.join(" or "),
                pods[0].task()
            )));
        }
    }
    Ok(())
}
