//! A host as a place that runs jobs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jobc_schema::plan::JobPlan;
use jobc_sys::error::Result;
use jobc_sys::parallel::lock;

use super::answers::json;
use super::images::ImageSender;
use super::program::{Access, Connection, START_TIMEOUT};
use super::record::InspectedJob;
use super::runs::{Entry, Listing};
use super::scripts::REMOVE;
use super::sources::Sources;
use super::{answers, capacity, checks, copy, events, exec, follow, logs, port_forward, runs, submit, usage};
use crate::identity::Identity;
use crate::place::{
    AccessCheck, Capacity, Copied, CopyRequest, Delivery, Event, EventOutput, ExecRequest, ExecStreams,
    ForwardRequest, JobDetail, JobProgress, JobSummary, KillRequest, LogOutput, LogRequest, Place, Problem,
    RemotePlace, SharedPorts, StopRequest, Submission, SubmitError, TaskUsage,
};

/// A host that runs jobs.
pub struct Machine {
    connection: Connection,
    images: ImageSender,
    /// The files of jobs by the directory of the job file and the plan's digest.
    sources: Mutex<BTreeMap<(PathBuf, String), Arc<Sources>>>,
    /// The runs and jobs when they were last listed.
    listing: Mutex<Option<Arc<Listing>>>,
    notice: Box<dyn Fn(&str) + Send + Sync>,
}

impl Machine {
    /// A host. `notice` gets warnings of the host. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The settings name no host.
    pub fn new(access: Access, notice: impl Fn(&str) + Send + Sync + 'static) -> Result<Self> {
        Ok(Self {
            connection: Connection::new(access)?,
            images: ImageSender::default(),
            sources: Mutex::default(),
            listing: Mutex::default(),
            notice: Box::new(notice),
        })
    }

    /// The files of a job; they are read once.
    fn sources(&self, plan: &JobPlan, directory: &Path) -> Result<Arc<Sources>> {
        let volumes = serde_json::to_string(&plan.volumes).unwrap_or_default();
        let key = (directory.to_owned(), volumes);
        let mut known = lock(&self.sources);
        if let Some(sources) = known.get(&key) {
            return Ok(Arc::clone(sources));
        }
        let sources = Arc::new(Sources::read(plan, directory)?);
        known.insert(key, Arc::clone(&sources));
        Ok(sources)
    }

    /// The current runs and jobs on the host.
    fn listing(&self) -> Result<Arc<Listing>> {
        let found = Arc::new(runs::list(&self.connection)?);
        *lock(&self.listing) = Some(Arc::clone(&found));
        Ok(found)
    }

    /// The runs and jobs when they were last listed: a submission begins with a list.
    fn last_listing(&self) -> Result<Arc<Listing>> {
        let last = lock(&self.listing).clone();
        last.map_or_else(|| self.listing(), Ok)
    }

    fn record(&self, id: &str) -> Result<InspectedJob> {
        json(self.connection.name(), self.connection.jobc(&["inspect", id, "--format", "json"])?)
    }

    /// The id of the job of a name.
    fn id(&self, name: &str) -> Result<String> {
        runs::id(&self.connection, name)
    }
}

impl Place for Machine {
    fn list(&self) -> Result<Vec<JobSummary>> {
        Ok(self.listing()?.entries.iter().map(Entry::summary).collect())
    }

    fn find(&self, name: &str) -> Result<JobSummary> {
        Ok(runs::find(&self.connection, name)?.summary())
    }

    fn wait(&self, name: &str, progress: JobProgress<'_>) -> Result<Option<JobSummary>> {
        follow::wait(&self.connection, name, progress)
    }

    fn stop(&self, name: &str, request: StopRequest<'_>) -> Result<Option<JobSummary>> {
        let id = self.id(name)?;
        let program = self.connection.program()?.to_owned();
        let mut words = vec![super::scripts::RUN, "sh", &program, "stop", &id];
        let grace = request.grace.map(|grace| format!("--grace={}s", grace.as_secs()));
        words.extend(grace.as_deref());
        words.extend(request.no_wait.then_some("--no-wait"));
        let output = self.connection.script(&words, None, START_TIMEOUT)?;
        answers::succeeded(self.connection.name(), output)?;
        Ok(None)
    }

    fn kill(&self, name: &str, request: KillRequest<'_>) -> Result<Option<JobSummary>> {
        let (id, signal) = (self.id(name)?, format!("--signal={}", request.signal));
        let mut words = vec!["kill", if request.force { "--force" } else { &signal }, &id];
        words.extend(request.tasks.iter().map(String::as_str));
        self.connection.jobc_succeeds(&words)?;
        Ok(None)
    }

    fn hold(&self, name: &str, hold: bool) -> Result<()> {
        let id = self.id(name)?;
        self.connection.jobc_succeeds(&[if hold { "pause" } else { "resume" }, &id]).map(drop)
    }

    fn suspend(&self, name: &str) -> Result<()> {
        let id = self.id(name)?;
        self.connection.jobc_succeeds(&["suspend", &id]).map(drop)
    }

    fn delete(&self, name: &str) -> Result<()> {
        let entry = runs::find(&self.connection, name)?;
        let directory = entry.run.as_ref().map(|run| self.connection.run_directory(&run.name));
        let program = self.connection.program()?.to_owned();
        let mut words =
            vec![REMOVE, "sh", directory.as_deref().unwrap_or_default(), entry.id().unwrap_or("-"), &program];
        words.extend(entry.run.iter().flat_map(|run| run.outputs.iter().map(String::as_str)));
        let output = self.connection.script(&words, None, START_TIMEOUT)?;
        answers::succeeded(self.connection.name(), output).map(drop)
    }

    fn inspect(&self, name: &str) -> Result<JobDetail> {
        let entry = runs::find(&self.connection, name)?;
        match entry.id() {
            Some(id) => Ok(self.record(id)?.detail(entry.summary())),
            None => Err(runs::not_started(name)),
        }
    }

    fn events(&self, name: &str) -> Result<Vec<Event>> {
        let output = self.connection.jobc_succeeds(&["events", &self.id(name)?, "--format", "json"])?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(events::read).collect())
    }

    fn follow_events(&self, name: &str, output: EventOutput<'_>) -> Result<()> {
        let id = self.id(name)?;
        follow::lines(&self.connection, &["events", &id, "--follow", "--format", "json"], &mut |line| {
            match line.and_then(|line| events::read(&String::from_utf8_lossy(line))) {
                Some(event) => output(&event),
                None => ControlFlow::Continue(()),
            }
        })
    }

    fn logs(&self, name: &str, request: &LogRequest, output: LogOutput<'_>) -> Result<()> {
        logs::logs(&self.connection, &self.id(name)?, request, output)
    }

    fn exec(&self, name: &str, request: &ExecRequest, streams: ExecStreams<'_>) -> Result<u8> {
        exec::exec(&self.connection, &self.id(name)?, request, streams)
    }

    fn port_forward(&self, name: &str, request: ForwardRequest<'_>) -> Result<()> {
        let job = self.record(&self.id(name)?)?;
        port_forward::port_forward(&self.connection, &job, request)
    }

    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied> {
        copy::copy(&self.connection, &self.id(name)?, request)
    }

    fn capacity(&self) -> Result<Vec<Capacity>> {
        let output = self.connection.jobc_succeeds(&["gpu", "ls", "--format", "json"])?;
        Ok(capacity::read(self.connection.name(), &output.stdout).into_iter().collect())
    }

    fn usage(&self, name: &str) -> Result<Vec<TaskUsage>> {
        let output =
            self.connection.jobc_succeeds(&["stats", &self.id(name)?, "--no-stream", "--format", "json"])?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(usage::read).collect())
    }
}

impl RemotePlace for Machine {
    fn delivery(&self) -> Delivery {
        Delivery { sends_files: true, ports: SharedPorts::OfHost, verifies_here: true }
    }

    fn identity(&self, plan: &JobPlan, directory: &Path) -> Result<Identity> {
        let identity = Identity::of(plan);
        Ok(match self.sources(plan, directory)?.digest() {
            Some(content) => identity.with_content(&content),
            None => identity,
        })
    }

    fn runs_of(&self, identity: &Identity) -> Result<Vec<JobSummary>> {
        let is_it =
            |job: &JobSummary| job.job == identity.job && job.plan.as_deref() == Some(identity.label());
        Ok(self.list()?.into_iter().filter(is_it).collect())
    }

    fn is_taken(&self, name: &str) -> Result<bool> {
        Ok(self.last_listing()?.names.contains(name))
    }

    fn check(&self, submission: &Submission<'_>) -> Result<Vec<Problem>> {
        let listing = self.last_listing()?;
        Ok(checks::job(self.connection.name(), &listing, submission))
    }

    fn submit(&self, submission: &Submission<'_>) -> std::result::Result<(), SubmitError> {
        let sources = self.sources(&submission.built.plan, submission.directory)?;
        let warnings = submit::submit(&self.connection, &self.images, &sources, submission)?;
        for warning in &warnings {
            (self.notice)(warning);
        }
        Ok(())
    }

    fn check_access(&self) -> Result<Vec<AccessCheck>> {
        checks::access(&self.connection)
    }
}
