//! The running pod of one task.

use jobc_schema::percent::encode_segment;
use jobc_sys::error::{Error, Kind, Result};

use super::client::Client;
use super::objects::{ClusterJob, pods};
use super::pods::Pod;
use super::watch::list;

/// The pod in which a task runs; without a name, that of the only task that runs.
pub(crate) fn running(client: &Client, found: &ClusterJob, word: Option<&str>) -> Result<Pod> {
    let Some(word) = word else { return only_running(client, found) };
    let mut chosen = of_labels(client, found, word);
    if chosen.is_empty() {
        // The label with the index is of Kubernetes 1.28.
        chosen = pods(client, found)?;
        check(&chosen, found, word)?;
        chosen.retain(|pod| pod.task() == word || pod.role() == word);
    }
    // A role stands for its first task.
    let first = chosen.iter().map(Pod::task_order).min();
    chosen.retain(|pod| Some(pod.task_order()) == first);
    let (running, others): (Vec<Pod>, Vec<Pod>) = chosen.into_iter().partition(Pod::is_running);
    let newest = |pods: Vec<Pod>| pods.into_iter().max_by(|a, b| age(a).cmp(&age(b)));
    match (newest(running), newest(others)) {
        (Some(pod), _) => Ok(pod),
        (None, Some(pod)) => Err(Error::new(
            Kind::State,
            format!(
                "task `{}` of job `{}` is {}, not running",
                pod.task(),
                found.name(),
                pod.state().as_str()
            ),
        )),
        (None, None) => Err(unknown(found, word)),
    }
}

fn age(pod: &Pod) -> (&str, &str) {
    (&pod.metadata.creation_timestamp, &pod.metadata.name)
}

/// The pods of a task by labels, without reading those of all others; none if they cannot be found so.
pub(crate) fn of_labels(client: &Client, found: &ClusterJob, word: &str) -> Vec<Pod> {
    let Some((role, index)) = word.rsplit_once('-').filter(|(_, index)| index.parse::<u32>().is_ok()) else {
        return vec![];
    };
    let Some(label) = found.workload.pod_label else { return vec![] };
    let own = format!("{label}={}", found.name());
    let selector = format!("{own},jobc.dev/role={role},batch.kubernetes.io/job-completion-index={index}");
    let path = format!("/api/v1/namespaces/{}/pods", client.config().namespace);
    list(client, &path, &format!("labelSelector={}", encode_segment(&selector))).unwrap_or_default()
}

fn only_running(client: &Client, found: &ClusterJob) -> Result<Pod> {
    let all = pods(client, found)?;
    let mut running = all.into_iter().filter(Pod::is_running);
    match (running.next(), running.next()) {
        (Some(pod), None) => Ok(pod),
        (None, _) => Err(Error::new(Kind::State, format!("no task of job `{}` is running", found.name()))),
        (Some(pod), Some(other)) => Err(Error::new(
            Kind::Config,
            format!("several tasks of job `{}` are running; name one", found.name()),
        )
        .help(format!("such as `{}` or `{}`", pod.task(), other.task()))),
    }
}

fn check(pods: &[Pod], found: &ClusterJob, word: &str) -> Result<()> {
    if pods.is_empty() {
        return Err(Error::new(Kind::State, format!("job `{}` has no pods", found.name())));
    }
    let is_known = pods.iter().any(|pod| pod.task() == word || pod.role() == word);
    if is_known { Ok(()) } else { Err(unknown(found, word)) }
}

fn unknown(found: &ClusterJob, word: &str) -> Error {
    Error::new(Kind::Config, format!("job `{}` has no task `{}`", found.name(), word.escape_debug()))
        .help("`jobc ps TARGET/NAME` lists its tasks")
}
