//! An OpenPAI cluster as a [`Place`].

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use jobc_sys::error::{Error, Kind, Result};
use serde_json::json;

use super::access::Access;
use super::api::{Detail, EventList, RawEvent};
use super::attempts::History;
use super::client::Client;
use super::names::{self, REMOVED};
use super::state::{of_detail, time_of};
use super::status::ApiError;
use super::{checks, jobs, logs, submit, why};
use crate::identity::Identity;
use crate::place::{
    AccessCheck, Event, JobDetail, JobSummary, LogItem, LogRequest, Place, Problem, Submission, SubmitError,
};

/// How often a job is asked for its state, by how long it was waited for.
const INTERVALS: [(Duration, Duration); 3] = [
    (Duration::from_mins(1), Duration::from_secs(2)),
    (Duration::from_mins(10), Duration::from_secs(5)),
    (Duration::MAX, Duration::from_secs(15)),
];
/// How often new events are asked for.
const EVENT_INTERVAL: Duration = Duration::from_secs(3);
/// How long a job may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_mins(3);

/// A cluster, seen by the user of a token.
pub struct Cluster {
    client: Client,
}

impl Cluster {
    /// The cluster behind a rest-server. `notice` gets what happens while a request is repeated. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// There is no token, or the certificate authority cannot be read.
    pub fn new(access: Access, notice: impl Fn(&str) + Send + Sync + 'static) -> Result<Self> {
        Ok(Self { client: Client::new(access, Box::new(notice))? })
    }

    fn path(job: &Detail) -> String {
        names::path(&job.job_status.username, &job.name)
    }

    /// The job of a path, which must be there.
    fn read(&self, path: &str, name: &str) -> Result<Detail> {
        self.client.get(path).map_err(|error| error.into_error(&format!("read job `{name}`")))
    }

    /// The events of a job, the oldest first.
    fn read_events(&self, path: &str) -> Result<Vec<RawEvent>> {
        let list = self.client.get::<EventList>(&format!("{path}/events")).map_err(|error| {
            if error.is_unknown_route() {
                let error = Error::new(Kind::Unsupported, "this release of OpenPAI has no events of jobs");
                return error.help("`jobc inspect` shows why a job waits");
            }
            error.into_error("read the events of the job")
        })?;
        Ok(list.data.into_iter().rev().collect())
    }

    /// Waits for the end of a job until a deadline.
    fn wait_until(
        &self,
        job: &Detail,
        deadline: Option<Instant>,
        progress: &mut dyn FnMut(&JobSummary) -> ControlFlow<()>,
    ) -> Result<Option<JobSummary>> {
        let (path, since) = (Self::path(job), Instant::now());
        let mut last = of_detail(job);
        if progress(&last).is_break() {
            return Ok(None);
        }
        while !last.state.is_final() {
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Ok(None);
            }
            let waited = since.elapsed();
            let interval = INTERVALS.iter().find(|(until, _)| waited < *until);
            std::thread::sleep(interval.map_or(STOP_TIMEOUT, |(_, interval)| *interval));
            let now = of_detail(&self.read(&path, &last.name)?);
            let is_new = (now.state, now.tasks) != (last.state, last.tasks);
            last = now;
            if is_new && progress(&last).is_break() {
                return Ok(None);
            }
        }
        Ok(Some(last))
    }
}

impl Place for Cluster {
    fn user(&self, _: &str) -> Result<String> {
        Ok(self.client.user())
    }

    fn runs_of(&self, identity: &Identity) -> Result<Vec<JobSummary>> {
        jobs::submitted(&self.client, Some(&identity.job), Some(identity))
            .map_err(|error| error.into_error("list the runs of the job"))
    }

    fn is_taken(&self, name: &str) -> Result<bool> {
        let found = self.client.find::<Detail>(&names::path(&self.client.user(), name));
        found
            .map(|found| found.is_some())
            .map_err(|error| error.into_error(&format!("look for job `{name}`")))
    }

    fn check(&self, submission: &Submission<'_>) -> Result<Vec<Problem>> {
        checks::check(&self.client, submission)
    }

    fn submit(&self, submission: &Submission<'_>) -> std::result::Result<(), SubmitError> {
        submit::submit(&self.client, submission)
    }

    fn list(&self) -> Result<Vec<JobSummary>> {
        jobs::submitted(&self.client, None, None).map_err(|error| error.into_error("list jobs"))
    }

    fn find(&self, name: &str) -> Result<JobSummary> {
        Ok(of_detail(&jobs::find(&self.client, name)?))
    }

    fn inspect(&self, name: &str) -> Result<JobDetail> {
        let job = jobs::find(&self.client, name)?;
        let summary = of_detail(&job);
        let attempts = History::default()
            .attempts(&self.client, &job)
            .map_err(|error| error.into_error("read the tasks of the job"))?;
        let mut reasons = Vec::new();
        if !summary.is_complete && names::is_run(&summary.name) {
            reasons
                .push("its submission is not complete; submit the same job again to complete it".to_owned());
        }
        reasons.extend(why::end(&job.job_status));
        reasons.extend(why::waiting(&job));
        Ok(JobDetail {
            summary,
            namespace: None,
            virtual_cluster: job.job_status.virtual_cluster.clone(),
            reasons,
            task_list: attempts.iter().map(super::attempts::Attempt::describe).collect(),
        })
    }

    fn events(&self, name: &str) -> Result<Vec<Event>> {
        let job = jobs::find(&self.client, name)?;
        Ok(self.read_events(&Self::path(&job))?.into_iter().map(event).collect())
    }

    fn follow_events(&self, name: &str, output: &mut dyn FnMut(&Event) -> ControlFlow<()>) -> Result<()> {
        let mut job = jobs::find(&self.client, name)?;
        let path = Self::path(&job);
        let mut shown = BTreeSet::new();
        loop {
            // Events from before the end of the job are there after it was seen.
            let has_ended = of_detail(&job).state.is_final();
            for raw in self.read_events(&path)? {
                // A repeated event is one whose count grows.
                if shown.insert((raw.uid.clone(), raw.count)) && output(&event(raw)).is_break() {
                    return Ok(());
                }
            }
            if has_ended {
                return Ok(());
            }
            std::thread::sleep(EVENT_INTERVAL);
            job = self.read(&path, name)?;
        }
    }

    fn logs(
        &self,
        name: &str,
        request: &LogRequest,
        output: &mut dyn FnMut(LogItem<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let job = jobs::find(&self.client, name)?;
        logs::logs(&self.client, &Self::path(&job), request, output)
    }

    fn wait(
        &self,
        name: &str,
        progress: &mut dyn FnMut(&JobSummary) -> ControlFlow<()>,
    ) -> Result<Option<JobSummary>> {
        self.wait_until(&jobs::find(&self.client, name)?, None, progress)
    }

    fn stop(&self, name: &str) -> Result<()> {
        let job = jobs::find(&self.client, name)?;
        if of_detail(&job).state.is_final() {
            return Ok(());
        }
        let path = Self::path(&job);
        self.client
            .put(&format!("{path}/executionType"), &json!({"value": "STOP"}))
            .map_err(|error| error.into_error(&format!("stop job `{}`", job.name)))?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        match self.wait_until(&job, Some(deadline), &mut |_| ControlFlow::Continue(()))? {
            Some(_) => Ok(()),
            None => Err(Error::new(
                Kind::State,
                format!("job `{}` was told to stop, and has not ended yet", job.name),
            )
            .help("`jobc wait` waits for its end")),
        }
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.stop(name)?;
        let job = jobs::find(&self.client, name)?;
        if job.tags.is_none() {
            let message = "this release of OpenPAI keeps jobs and has no tags to hide them";
            return Err(Error::new(Kind::Unsupported, message).help("`jobc stop` ends a job"));
        }
        submit::add_tag(&self.client, &Self::path(&job), REMOVED)
            .map_err(|error: ApiError| error.into_error(&format!("remove job `{}`", job.name)))
    }

    fn check_access(&self) -> Result<Vec<AccessCheck>> {
        checks::access(&self.client)
    }
}

fn event(raw: RawEvent) -> Event {
    let object = match (&raw.taskrole_name, raw.task_index) {
        (Some(role), Some(index)) => format!("task/{role}-{index}"),
        _ => "job".to_owned(),
    };
    Event {
        time: time_of(raw.last_timestamp.as_deref().or(raw.first_timestamp.as_deref()).unwrap_or_default()),
        object,
        is_warning: raw.kind == "Warning",
        reason: raw.reason,
        message: raw.message,
        count: raw.count.unwrap_or(1),
    }
}
