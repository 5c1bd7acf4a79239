//! A cluster as a [`Place`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::checks;
use super::client::{Client, Notice, encode};
use super::kinds::{WORKLOADS, Workload};
use super::kubeconfig::ClusterConfig;
use super::logs::{self, Extent, Output};
use super::pods::{self, Pod};
use super::rights;
use super::state::{JOB, MANAGED, PLAN, condition, name, summarize, text};
use super::status::ApiError;
use super::submit;
use super::watch::{Change, list, watch};
use super::why;
use crate::identity::Identity;
use crate::place::{
    AccessCheck, Event, JobDetail, JobState, JobSummary, LogItem, LogRequest, Place, Problem, Submission,
    SubmitError,
};

/// Pods whose events are asked for one by one; of a larger job, the events of the namespace are read.
const MAX_EVENT_QUERIES: usize = 20;
/// Tasks whose output is followed at the same time: each takes a connection and a thread.
const MAX_FOLLOWED: usize = 256;
/// How often the state of a job is looked at while no output arrives.
const IDLE: Duration = Duration::from_secs(2);
/// Lines on their way to the user.
const MAX_QUEUED: usize = 4096;
/// How long a deletion may take until its pods are gone.
const DELETE_TIMEOUT: Duration = Duration::from_mins(2);

/// A cluster, seen by one user in one namespace.
pub struct Cluster {
    client: Arc<Client>,
}

/// The object of a job.
struct ClusterJob {
    workload: &'static Workload,
    object: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEvent {
    #[serde(default)]
    metadata: RawMetadata,
    #[serde(default)]
    involved_object: RawObject,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    count: Option<u64>,
    #[serde(default)]
    last_timestamp: Option<String>,
    #[serde(default)]
    event_time: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawMetadata {
    creation_timestamp: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawObject {
    kind: String,
    name: String,
    uid: String,
}

impl Cluster {
    /// The cluster of a configuration. `notice` gets what happens while a request is repeated. Nothing is sent yet.
    pub fn new(config: ClusterConfig, notice: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let notice: Notice = Box::new(notice);
        Self { client: Arc::new(Client::new(config, notice)) }
    }

    fn namespace(&self) -> &str {
        &self.client.config().namespace
    }

    /// The objects of jobs that a selector chooses; a kind that the cluster does not serve has none.
    fn objects(&self, selector: &str) -> Result<Vec<ClusterJob>> {
        let query = format!("labelSelector={}", encode(selector));
        let mut found = Vec::new();
        for workload in &WORKLOADS {
            match list::<Value>(&self.client, &workload.path(self.namespace()), &query) {
                Ok(objects) => found.extend(objects.into_iter().map(|mut object| {
                    // Items of a list have neither.
                    object["kind"] = workload.kind.into();
                    object["apiVersion"] = format!("{}/{}", workload.group, workload.version).into();
                    ClusterJob { workload, object }
                })),
                Err(error) if error.is(404) => {}
                Err(error) => return Err(error.into_error(&format!("list {}", workload.resource()))),
            }
        }
        // RFC 3339 in UTC sorts as text.
        found.sort_by(|a, b| {
            let key = |found: &ClusterJob| text(&found.object, "/metadata/creationTimestamp").to_owned();
            key(b).cmp(&key(a))
        });
        Ok(found)
    }

    /// The object of a run, or of the newest run of a job.
    fn object(&self, wanted: &str) -> Result<ClusterJob> {
        for workload in &WORKLOADS {
            let path = format!("{}/{wanted}", workload.path(self.namespace()));
            let found = self.client.find::<Value>(&path);
            if let Some(object) = found.map_err(|error| error.into_error(&format!("read job `{wanted}`")))? {
                return Ok(ClusterJob { workload, object });
            }
        }
        let is_label = wanted.len() <= 63 && wanted.ends_with(|c: char| c.is_ascii_alphanumeric());
        let runs = if is_label { self.objects(&format!("{JOB}={wanted}"))? } else { vec![] };
        runs.into_iter().next().ok_or_else(|| {
            Error::new(
                Kind::NotFound,
                format!("there is no job `{wanted}` in the namespace `{}`", self.namespace()),
            )
            .help("it may have been removed; `jobc ps --target TARGET --all` lists the jobs")
        })
    }

    fn summary(&self, found: &ClusterJob) -> JobSummary {
        let mut summary = summarize(found.workload, &found.object);
        // A JobSet says only that a Job of it failed.
        if summary.state == JobState::Failed && found.workload.kind == "JobSet" {
            let late = self.children(&summary.name).iter().any(|child| {
                condition(child, &["Failed"])
                    .is_some_and(|failed| text(failed, "/reason") == "DeadlineExceeded")
            });
            if late {
                summary.state = JobState::TimedOut;
            }
        }
        summary
    }

    /// The Jobs of a JobSet; none if they cannot be read.
    fn children(&self, name: &str) -> Vec<Value> {
        let path = WORKLOADS[0].path(self.namespace());
        let selector = encode(&format!("jobset.sigs.k8s.io/jobset-name={name}"));
        list(&self.client, &path, &format!("labelSelector={selector}")).unwrap_or_default()
    }

    fn pods(&self, found: &ClusterJob) -> Result<Vec<Pod>> {
        list(&self.client, &self.pods_path(), &pods_query(found))
            .map_err(|error| error.into_error("list the pods of the job"))
    }

    fn pods_path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace())
    }

    fn events_of(&self, found: &ClusterJob, pods: &[Pod]) -> Result<Vec<Event>> {
        let path = format!("/api/v1/namespaces/{}/events", self.namespace());
        let mut uids: BTreeSet<String> = BTreeSet::from([text(&found.object, "/metadata/uid").to_owned()]);
        if found.workload.kind == "JobSet" {
            let children = self.children(name(&found.object));
            uids.extend(children.iter().map(|child| text(child, "/metadata/uid").to_owned()));
        }
        uids.extend(pods.iter().map(|pod| pod.metadata.uid.clone()));
        let failed = |error: ApiError| error.into_error("list events");
        let mut raw: Vec<RawEvent> = Vec::new();
        if uids.len() <= MAX_EVENT_QUERIES {
            for uid in &uids {
                let query = format!("fieldSelector={}", encode(&format!("involvedObject.uid={uid}")));
                raw.extend(list::<RawEvent>(&self.client, &path, &query).map_err(failed)?);
            }
        } else {
            raw = list(&self.client, &path, "").map_err(failed)?;
            raw.retain(|event| uids.contains(&event.involved_object.uid));
        }
        let mut events: Vec<Event> = raw.into_iter().map(Event::from).collect();
        events.sort_by(|a, b| a.time.cmp(&b.time));
        Ok(events)
    }

    /// What Kueue says about a job in a queue.
    fn of_queue(&self, found: &ClusterJob) -> Vec<String> {
        let uid = text(&found.object, "/metadata/uid");
        let selector = encode(&format!("kueue.x-k8s.io/job-uid={uid}"));
        for version in ["v1beta2", "v1beta1"] {
            let path = format!("/apis/kueue.x-k8s.io/{version}/namespaces/{}/workloads", self.namespace());
            let Ok(workloads) = list::<Value>(&self.client, &path, &format!("labelSelector={selector}"))
            else {
                continue;
            };
            let Some(workload) = workloads.first() else { return vec![] };
            let mut reasons: Vec<String> = why::of_workload(workload).into_iter().collect();
            let queue = text(workload, "/spec/queueName");
            if reasons.first().is_some_and(|reason| reason.starts_with("waits in the queue"))
                && !queue.is_empty()
            {
                let path = format!(
                    "/apis/visibility.kueue.x-k8s.io/{version}/namespaces/{}/localqueues/{queue}/pendingworkloads?limit=1000",
                    self.namespace()
                );
                let answer = self.client.get::<Value>(&path).ok();
                let place = answer.and_then(|answer| why::position(&answer, name(workload)));
                reasons.extend(place.map(|place| format!("it is {place} `{queue}`")));
            }
            return reasons;
        }
        vec![]
    }

    /// Whether a job has ended or does not exist any more.
    fn has_ended(&self, found: &ClusterJob) -> Result<bool> {
        let path = format!("{}/{}", found.workload.path(self.namespace()), name(&found.object));
        let now = self.client.find::<Value>(&path).map_err(|error| error.into_error("read the job"))?;
        Ok(now.is_none_or(|object| {
            text(&object, "/metadata/uid") != text(&found.object, "/metadata/uid")
                || summarize(found.workload, &object).state.is_final()
        }))
    }
}

fn pods_query(found: &ClusterJob) -> String {
    format!("labelSelector={}", encode(&format!("{}={}", found.workload.pod_label, name(&found.object))))
}

impl From<RawEvent> for Event {
    fn from(raw: RawEvent) -> Self {
        let time = raw.last_timestamp.or(raw.event_time).unwrap_or(raw.metadata.creation_timestamp);
        let kind = raw.involved_object.kind.to_lowercase();
        Self {
            time,
            object: format!("{kind}/{}", raw.involved_object.name),
            is_warning: raw.kind == "Warning",
            reason: raw.reason,
            message: raw.message,
            count: raw.count.unwrap_or(1),
        }
    }
}

impl Place for Cluster {
    fn runs_of(&self, identity: &Identity) -> Result<Vec<JobSummary>> {
        let runs = self.objects(&format!("{JOB}={},{PLAN}={}", identity.job, identity.label()))?;
        Ok(runs.iter().map(|found| self.summary(found)).collect())
    }

    fn is_taken(&self, wanted: &str) -> Result<bool> {
        match self.object(wanted) {
            Ok(found) => Ok(name(&found.object) == wanted),
            Err(error) if error.kind == Kind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn check(&self, submission: &Submission<'_>) -> Result<Vec<Problem>> {
        let client = &self.client;
        let failed = |error: ApiError| error.into_error("check the job with the cluster");
        let (_, workload) = submit::top(submission)?;
        let mut problems = Vec::new();
        let namespace = self.namespace();
        match client.find::<Value>(&format!("/api/v1/namespaces/{namespace}")) {
            Ok(None) => {
                return Ok(vec![Problem {
                    is_warning: false,
                    message: format!("there is no namespace `{namespace}` on the cluster"),
                    place: None,
                    help: Some("set `kubernetes.namespace` of the target".to_owned()),
                }]);
            }
            Ok(Some(_)) => {}
            // Namespaces are not in a namespace: few users may read them.
            Err(error) if error.is(403) => {}
            Err(error) => return Err(failed(error)),
        }
        let manifests = &submission.built.manifests;
        let served = checks::discover(client, manifests, &mut problems).map_err(failed)?;
        checks::rights(client, workload, submission, &served, &mut problems).map_err(failed)?;
        if !problems.is_empty() {
            return Ok(problems);
        }
        checks::references(client, submission, &mut problems).map_err(failed)?;
        checks::dry_run(client, &served, manifests, &mut problems).map_err(failed)?;
        if !problems.iter().any(|problem| !problem.is_warning) {
            checks::pods(client, manifests, &mut problems).map_err(failed)?;
        }
        Ok(problems)
    }

    fn submit(&self, submission: &Submission<'_>) -> std::result::Result<(), SubmitError> {
        submit::submit(&self.client, submission)
    }

    fn list(&self) -> Result<Vec<JobSummary>> {
        let found = self.objects(&format!("{MANAGED}=jobc"))?;
        Ok(found.iter().map(|found| summarize(found.workload, &found.object)).collect())
    }

    fn find(&self, name: &str) -> Result<JobSummary> {
        Ok(self.summary(&self.object(name)?))
    }

    fn inspect(&self, name: &str) -> Result<JobDetail> {
        let found = self.object(name)?;
        let summary = self.summary(&found);
        let pods = self.pods(&found)?;
        let mut reasons = Vec::new();
        if !summary.is_complete {
            reasons
                .push("its submission is not complete; submit the same job again to complete it".to_owned());
        }
        if let (true, Some(message)) = (summary.state.is_final(), &summary.message) {
            reasons.push(message.clone());
        }
        if !summary.state.is_final() {
            reasons.extend(self.of_queue(&found));
        }
        reasons.extend(why::of_pods(&pods));
        if matches!(summary.state, JobState::Pending | JobState::Suspended) {
            reasons.extend(why::of_events(&self.events_of(&found, &pods).unwrap_or_default()));
        }
        let namespace = self.namespace().to_owned();
        Ok(JobDetail { summary, namespace, reasons, task_list: pods::tasks(&pods) })
    }

    fn events(&self, name: &str) -> Result<Vec<Event>> {
        let found = self.object(name)?;
        self.events_of(&found, &self.pods(&found)?)
    }

    fn logs(
        &self,
        name: &str,
        request: &LogRequest,
        output: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let found = self.object(name)?;
        let mut known = self.pods(&found)?;
        // Without pods nothing is known of the tasks yet.
        if !known.is_empty() {
            check_tasks(&known, &request.tasks)?;
        }
        let extent = Extent { follow: request.follow, tail: request.tail, since: request.since.clone() };
        if !request.follow {
            self.print_logs(&known, request, &extent, output);
            return Ok(());
        }
        let (sender, receiver) = sync_channel::<Output>(MAX_QUEUED);
        let mut started: BTreeMap<String, (String, u32)> = BTreeMap::new();
        let mut open = 0_usize;
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
                    return Err(Error::new(
                        Kind::Unsupported,
                        format!("cannot follow more than {MAX_FOLLOWED} tasks at the same time"),
                    )
                    .help("name tasks or roles, as in `jobc logs -f TARGET/NAME train-0`"));
                }
                started.insert(pod.metadata.uid.clone(), (pod.task(), attempt));
                open += 1;
                let (client, pod, extent, sender) =
                    (Arc::clone(&self.client), pod.clone(), extent.clone(), sender.clone());
                std::thread::Builder::new()
                    .name("log".to_owned())
                    .stack_size(256 << 10)
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
            let ended = open == 0 && self.has_ended(&found)?;
            known = self.pods(&found)?;
            let more = known.iter().any(|pod| {
                pod.has_started() && is_chosen(pod, request) && !started.contains_key(&pod.metadata.uid)
            });
            if ended && (!more || request.attempt.is_some()) {
                return Ok(());
            }
        }
    }

    fn wait(
        &self,
        wanted: &str,
        progress: &mut dyn FnMut(&JobSummary) -> ControlFlow<()>,
    ) -> Result<Option<JobSummary>> {
        let found = self.object(wanted)?;
        let mut last = self.summary(&found);
        if progress(&last).is_break() {
            return Ok(None);
        }
        if last.state.is_final() {
            return Ok(Some(last));
        }
        let uid = text(&found.object, "/metadata/uid").to_owned();
        let query = format!("fieldSelector={}", encode(&format!("metadata.name={}", last.name)));
        let mut end = None;
        let mut look = |object: Option<Value>| {
            let same = object.filter(|object| text(object, "/metadata/uid") == uid);
            let now = match same {
                Some(object) => self.summary(&ClusterJob { workload: found.workload, object }),
                None => JobSummary { state: JobState::Stopped, reason: None, message: None, ..last.clone() },
            };
            let is_new = (now.state, now.tasks) != (last.state, last.tasks);
            last = now;
            if is_new && progress(&last).is_break() {
                return ControlFlow::Break(());
            }
            if last.state.is_final() {
                end = Some(last.clone());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        watch::<Value>(&self.client, &found.workload.path(self.namespace()), &query, &mut |change| {
            match change {
                Change::All(mut objects) => look(objects.pop()),
                Change::Changed(object) => look(Some(object)),
                Change::Deleted(_) => look(None),
            }
        })
        .map_err(|error| error.into_error(&format!("wait for job `{wanted}`")))?;
        Ok(end)
    }

    fn delete(&self, wanted: &str) -> Result<()> {
        let found = self.object(wanted)?;
        let uid = text(&found.object, "/metadata/uid");
        let path = format!("{}/{}", found.workload.path(self.namespace()), name(&found.object));
        // By default, a deleted Job leaves its pods behind.
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid},
        });
        match self.client.delete(&path, &options) {
            Ok(()) => {}
            // Gone already, or another job of the same name is there.
            Err(error) if error.is(404) || error.is(409) => return Ok(()),
            Err(error) => return Err(error.into_error(&format!("delete job `{}`", name(&found.object)))),
        }
        let deadline = std::time::Instant::now() + DELETE_TIMEOUT;
        while self
            .client
            .find::<Value>(&path)
            .map_err(|error| error.into_error("read the job"))?
            .is_some_and(|object| text(&object, "/metadata/uid") == uid)
        {
            if std::time::Instant::now() > deadline {
                return Err(Error::new(
                    Kind::State,
                    format!("job `{}` is being deleted, and is still there", name(&found.object)),
                )
                .help("a finalizer holds it; `kubectl describe` shows it"));
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        Ok(())
    }

    fn check_access(&self) -> Result<Vec<AccessCheck>> {
        let version: Value =
            self.client.get("/version").map_err(|error| error.into_error("reach the cluster"))?;
        let served = |workload: &Workload| {
            let path = format!("/apis/{}/{}", workload.group, workload.version);
            Ok::<_, Error>(
                self.client
                    .find::<Value>(&path)
                    .map_err(|error| error.into_error("ask for kinds"))?
                    .is_some(),
            )
        };
        let mut checks = vec![AccessCheck {
            what: format!("Kubernetes {}", text(&version, "/gitVersion")),
            is_allowed: true,
            needed_for: "everything",
            is_optional: false,
        }];
        for workload in &WORKLOADS {
            checks.push(AccessCheck {
                what: format!("kind {} ({}/{})", workload.kind, workload.group, workload.version),
                is_allowed: served(workload)?,
                needed_for: if workload.kind == "JobSet" {
                    "jobs with several roles"
                } else {
                    "jobs with one role"
                },
                is_optional: workload.kind == "JobSet",
            });
        }
        checks.extend(
            rights::check(&self.client, self.namespace())
                .map_err(|error| error.into_error("ask for rights"))?,
        );
        Ok(checks)
    }
}

impl Cluster {
    /// The output up to now, task by task.
    fn print_logs(
        &self,
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
            let (client, pod, extent) = (Arc::clone(&self.client), pod.clone(), extent.clone());
            std::thread::spawn(move || logs::read(&client, &pod, &extent, &sender));
            for item in receiver {
                if show(&item, &names, output).is_break() {
                    return;
                }
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
