//! The output of all tasks of a job.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobc_sys::error::{Error, Kind, Result};

use super::client::Client;
use super::log_streams::{Extent, LogStreams};
use super::objects::{self, ClusterJob};
use super::outage::Outage;
use super::pods::{self, Pod};
use super::task;
use crate::place::{LogItem, LogOutput, LogRequest};

/// Tasks whose output is followed at the same time: each takes a connection.
const MAX_FOLLOWED: usize = 256;
/// Tasks whose output is followed without their names.
const MAX_UNNAMED: usize = 100;
/// How often the state of a job is looked at while no output arrives.
const IDLE: Duration = Duration::from_secs(2);
/// How often the pods of a large job are listed again.
const RELIST_INTERVAL: Duration = Duration::from_secs(30);
/// Tasks that are looked for one by one; for more, all pods are listed.
const MAX_NAMED_QUERIES: usize = 16;
/// How often new pods are looked for while output arrives.
const BUSY: Duration = Duration::from_secs(10);

/// Passes the output of the chosen tasks on, until the job has ended if it is followed.
pub(crate) fn logs(
    client: &Arc<Client>,
    found: &ClusterJob,
    request: &LogRequest,
    output: LogOutput<'_>,
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
    let mut streams = LogStreams::new(Arc::clone(client), extent)?;
    if !request.follow {
        return print(&mut streams, &known, request, output);
    }
    let (mut started, mut outage) = (BTreeSet::new(), Outage::default());
    loop {
        let numbers = pods::attempts(&known);
        for pod in known.iter().filter(|pod| pod.has_started() && is_chosen(pod, request)) {
            let attempt = numbers[pod.metadata.uid.as_str()];
            if started.contains(&pod.metadata.uid) || request.attempt.is_some_and(|wanted| wanted != attempt)
            {
                continue;
            }
            if streams.len() == MAX_FOLLOWED {
                let wanted = known.iter().filter(|pod| pod.has_started() && is_chosen(pod, request)).count();
                return Err(too_many(wanted, MAX_FOLLOWED));
            }
            started.insert(pod.metadata.uid.clone());
            streams.add(pod, attempt);
        }
        let looked = Instant::now();
        loop {
            if follow_for_a_while(&mut streams, output)?.is_break() {
                return Ok(());
            }
            let ended = match (streams.len() == 0).then(|| objects::has_ended(client, found)) {
                Some(Err(error)) if outage.wait(client, &error.message()) => continue,
                ended => ended.transpose()?.unwrap_or_default(),
            };
            if looked.elapsed() < relist_interval(known.len()) && !ended {
                continue;
            }
            known = match chosen_pods(client, found, request) {
                Err(error) if outage.wait(client, &error.message()) => continue,
                pods => pods?,
            };
            outage.end();
            let more = known.iter().any(|pod| {
                pod.has_started() && is_chosen(pod, request) && !started.contains(&pod.metadata.uid)
            });
            if ended && (!more || request.attempt.is_some()) {
                return Ok(());
            }
            break;
        }
    }
}

/// Passes output on until nothing came for a while, a task has ended, which may be followed by another try, or it is
/// time to look for new pods. Breaks if the user wants no more.
fn follow_for_a_while(streams: &mut LogStreams, output: LogOutput<'_>) -> Result<ControlFlow<()>> {
    let begun = Instant::now();
    let mut last_shown = begun;
    loop {
        let ControlFlow::Continue(polled) = streams.poll(IDLE, output) else {
            return Ok(ControlFlow::Break(()));
        };
        let polled = polled?;
        if polled.is_busy {
            last_shown = Instant::now();
        }
        if polled.ended > 0 || begun.elapsed() >= BUSY {
            return Ok(ControlFlow::Continue(()));
        }
        if last_shown.elapsed() >= IDLE {
            return Ok(output(LogItem::Idle));
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
fn print(streams: &mut LogStreams, pods: &[Pod], request: &LogRequest, output: LogOutput<'_>) -> Result<()> {
    let numbers = pods::attempts(pods);
    let mut chosen: Vec<&Pod> =
        pods.iter().filter(|pod| pod.has_started() && is_chosen(pod, request)).collect();
    chosen.sort_by_key(|pod| (pod.task_order(), numbers[pod.metadata.uid.as_str()]));
    for pod in chosen {
        let attempt = numbers[pod.metadata.uid.as_str()];
        if request.attempt.is_some_and(|wanted| wanted != attempt) {
            continue;
        }
        streams.add(pod, attempt);
        while streams.len() > 0 {
            let ControlFlow::Continue(polled) = streams.poll(IDLE, output) else { return Ok(()) };
            polled?;
        }
    }
    Ok(())
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
