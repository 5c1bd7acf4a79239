//! A cluster as a [`Place`].

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::parallel::lock;
use serde_json::{Map, Value};

use super::answers::Answers;
use super::client::{Client, Notice};
use super::kubeconfig::ClusterConfig;
use super::objects::ClusterJob;
use super::pods;
use super::state::{MANAGED, PLAN, metadata, summarize};
use super::status::ApiError;
use super::{
    access, capacity, checks, events, exec, follow, lifecycle, objects, port_forward, reasons, submit,
    suspension, task, usage,
};
use crate::identity::Identity;
use crate::place::{
    AccessCheck, Capacity, Copied, CopyRequest, Delivery, Event, EventOutput, ExecRequest, ExecStreams,
    ForwardRequest, JobDetail, JobProgress, JobState, JobSummary, KillRequest, LogItem, LogOutput,
    LogRequest, Place, Problem, RemotePlace, SharedPorts, StopRequest, Submission, SubmitError, TaskUsage,
};
use crate::task_copy::{self, CopyTask};

/// A cluster, seen by one user in one namespace.
pub struct Cluster {
    client: Arc<Client>,
    answers: Answers,
    /// The job whose runs were listed last, and their names.
    listed: Mutex<Option<(String, BTreeSet<String>)>>,
}

impl Cluster {
    /// The cluster of a configuration. `notice` gets what happens while a request is repeated. Nothing is sent yet.
    pub fn new(config: ClusterConfig, notice: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let notice: Notice = Box::new(notice);
        Self {
            client: Arc::new(Client::new(config, notice)),
            answers: Answers::default(),
            listed: Mutex::default(),
        }
    }

    fn namespace(&self) -> &str {
        &self.client.config().namespace
    }

    /// Passes on the output up to now of a job whose pods are about to be deleted. A job is stopped even if its output
    /// cannot be read.
    fn keep_output(&self, found: &ClusterJob, keep: Option<&mut dyn FnMut(LogItem<'_>)>) {
        let Some(keep) = keep else { return };
        let job = objects::summary(&self.client, found);
        if job.state != JobState::Running || job.tasks.wanted > MAX_KEPT_TASKS {
            return;
        }
        let read = follow::logs(&self.client, found, &LogRequest::default(), &mut |item| {
            keep(item);
            ControlFlow::Continue(())
        });
        if let Err(error) = read {
            keep(LogItem::Remark { task: "", text: &error.message() });
        }
    }

    /// The runs of a job, whose names are remembered.
    fn list_runs(&self, job: &str) -> Result<Vec<ClusterJob>> {
        let runs = objects::runs_of(&self.client, job)?;
        let names = runs.iter().map(|found| found.name().to_owned()).collect();
        *lock(&self.listed) = Some((job.to_owned(), names));
        Ok(runs)
    }
}

/// The output of a job with more tasks is not read when the job is stopped.
const MAX_KEPT_TASKS: u64 = 100;

impl Place for Cluster {
    fn list(&self) -> Result<Vec<JobSummary>> {
        let found = objects::select(&self.client, &format!("{MANAGED}=jobc"))?;
        Ok(found.iter().map(|found| summarize(found.workload, &found.object)).collect())
    }

    fn find(&self, name: &str) -> Result<JobSummary> {
        Ok(objects::summary(&self.client, &objects::find(&self.client, name)?))
    }

    fn wait(&self, name: &str, progress: JobProgress<'_>) -> Result<Option<JobSummary>> {
        lifecycle::wait(&self.client, &objects::find(&self.client, name)?, progress)
    }

    fn stop(&self, name: &str, request: StopRequest<'_>) -> Result<Option<JobSummary>> {
        request.without_grace()?;
        let found = objects::find(&self.client, name)?;
        self.keep_output(&found, request.keep);
        suspension::stop(&self.client, &found, !request.no_wait)?;
        Ok(None)
    }

    fn kill(&self, name: &str, request: KillRequest<'_>) -> Result<Option<JobSummary>> {
        request.of_cluster()?;
        if !request.ends_job() {
            let message = format!("Kubernetes does not send SIG{} to pods", request.signal);
            return Err(Error::new(Kind::Unsupported, message)
                .help(format!("`jobc exec JOB TASK -- kill -{} 1` sends it to a task", request.signal)));
        }
        let found = objects::find(&self.client, name)?;
        self.keep_output(&found, request.keep);
        suspension::kill(&self.client, &found)?;
        Ok(None)
    }

    fn hold(&self, name: &str, hold: bool) -> Result<()> {
        suspension::hold(&self.client, &objects::find(&self.client, name)?, hold)
    }

    fn delete(&self, name: &str) -> Result<()> {
        lifecycle::delete(&self.client, &objects::find(&self.client, name)?, true)
    }

    fn inspect(&self, name: &str) -> Result<JobDetail> {
        let found = objects::find(&self.client, name)?;
        let summary = objects::summary(&self.client, &found);
        let pods = objects::pods(&self.client, &found)?;
        let reasons = reasons::of_job(&self.client, &found, &summary, &pods);
        let facts = vec![("namespace", self.namespace().to_owned())];
        Ok(JobDetail { reasons, facts, ..JobDetail::new(summary, pods::tasks(&pods)) })
    }

    fn more(&self, _: &str) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("namespace".to_owned(), self.namespace().into())]))
    }

    fn events(&self, name: &str) -> Result<Vec<Event>> {
        let found = objects::find(&self.client, name)?;
        let is_small = events::are_few(summarize(found.workload, &found.object).tasks.wanted);
        let pods = is_small.then(|| objects::pods(&self.client, &found)).transpose()?;
        let events = events::of_job(&self.client, &found, pods.as_deref())?;
        Ok(events.into_iter().map(|observed| observed.event).collect())
    }

    fn logs(&self, name: &str, request: &LogRequest, output: LogOutput<'_>) -> Result<()> {
        let found = objects::find(&self.client, name)?;
        follow::logs(&self.client, &found, request, output)?;
        let job = objects::summary(&self.client, &found);
        // What was followed was shown before it was lost. The pods of a large job are not listed once more for this.
        if !request.follow && !request.is_search && job.state.is_final() && events::are_few(job.tasks.wanted)
        {
            let pods = objects::pods(&self.client, &found)?;
            if let Some(gone) = reasons::lost_pods(&found, &job, &pods) {
                self.client.notice(&gone);
            }
        }
        Ok(())
    }

    fn follow_events(&self, name: &str, output: EventOutput<'_>) -> Result<()> {
        events::follow(&self.client, objects::find(&self.client, name)?, output)
    }

    fn usage(&self, name: &str) -> Result<Vec<TaskUsage>> {
        usage::of_job(&self.client, &objects::find(&self.client, name)?)
    }

    fn capacity(&self) -> Result<Vec<Capacity>> {
        capacity::of_cluster(&self.client)
    }

    fn exec(&self, name: &str, request: &ExecRequest, streams: ExecStreams<'_>) -> Result<u8> {
        let found = objects::find(&self.client, name)?;
        let pod = task::running(&self.client, &found, request.task.as_deref())?;
        exec::exec(&self.client, &pod, request, streams)
    }

    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied> {
        let found = objects::find(&self.client, name)?;
        let pod = task::running(&self.client, &found, Some(&request.task))?;
        let exec = |request: &ExecRequest, streams: ExecStreams<'_>| {
            exec::exec(&self.client, &pod, request, streams)
        };
        task_copy::copy(&CopyTask { name: &pod.task(), exec: &exec }, request)
    }

    fn port_forward(&self, name: &str, request: ForwardRequest<'_>) -> Result<()> {
        port_forward::forward(&self.client, &objects::find(&self.client, name)?, request)
    }
}

impl RemotePlace for Cluster {
    fn delivery(&self) -> Delivery {
        Delivery { ports: SharedPorts::OfNodes, ..Delivery::default() }
    }

    fn runs_of(&self, identity: &Identity) -> Result<Vec<JobSummary>> {
        let mut runs = self.list_runs(&identity.job)?;
        runs.retain(|found| metadata(&found.object, "labels", PLAN) == Some(identity.label()));
        Ok(runs.iter().map(|found| objects::summary(&self.client, found)).collect())
    }

    fn is_taken(&self, wanted: &str) -> Result<bool> {
        // The name of a run is that of its job and a suffix. One that another object has is refused when it is created.
        let job = wanted.rsplit_once('-').map_or(wanted, |(job, _)| job);
        let is_known = |listed: &Option<(String, BTreeSet<String>)>| {
            listed.as_ref().is_some_and(|(known, _)| known == job)
        };
        if !is_known(&lock(&self.listed)) {
            self.list_runs(job)?;
        }
        Ok(lock(&self.listed).as_ref().is_some_and(|(_, names)| names.contains(wanted)))
    }

    fn check(&self, submission: &Submission<'_>) -> Result<Vec<Problem>> {
        let client = &self.client;
        let failed = |error: ApiError| error.into_error("check the job with the cluster");
        let (_, workload) = submit::top(submission)?;
        checks::check(client, &self.answers, workload, submission).map_err(failed)
    }

    fn submit(&self, submission: &Submission<'_>) -> std::result::Result<(), SubmitError> {
        submit::submit(&self.client, &self.answers, submission)
    }

    fn check_access(&self) -> Result<Vec<AccessCheck>> {
        access::check(&self.client)
    }
}
