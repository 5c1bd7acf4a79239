//! A Slurm cluster as a [`Place`].

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use jobc_place::time::format_duration;
use jobc_schema::plan::JobPlan;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::parallel::lock;

use super::access::Access;
use super::checks::Checked;
use super::login::{Ends, Forget, Hold, Journal, Kill, List, Output, Outputs, Remove, Stop};
use super::state::Run;
use super::{array, capacity, checks, events, exec, logs, port_forward, submit, time, usage};
use crate::host::Host;
use crate::http::Notice;
use crate::identity::Identity;
use crate::place::{
    AccessCheck, Capacity, Copied, CopyRequest, Delivery, Event, EventOutput, ExecRequest, ExecStreams,
    ForwardRequest, JobDetail, JobProgress, JobSummary, KillRequest, LogOutput, LogRequest, Place, Problem,
    RemotePlace, StopRequest, Submission, SubmitError, TaskUsage,
};
use crate::task_copy::{self, CopyTask};

/// How often a run is looked at, by how long it was waited for.
const INTERVALS: [(Duration, Duration); 3] = [
    (Duration::from_mins(1), Duration::from_millis(500)),
    (Duration::from_mins(10), Duration::from_secs(2)),
    (Duration::MAX, Duration::from_secs(5)),
];
/// How often Slurm is asked about a run that is waited for: its scripts say most of it.
const QUEUE_INTERVAL: Duration = Duration::from_secs(5);
/// The same in the first minute of a wait for a run without a supervisor, of which only Slurm says how it is.
const DIRECT_INTERVAL: Duration = Duration::from_secs(2);
/// The wait from which on a user is told what is waited for.
const NOTICE_DELAY: Duration = Duration::from_secs(2);
/// How long a run may take to stop, after its own time.
const STOP_TIMEOUT: Duration = Duration::from_mins(3);

/// A cluster, seen by its user.
pub struct Cluster {
    access: Access,
    notice: Notice,
    checked: Checked,
    /// The job whose runs were listed last, and their names.
    listed: Mutex<Option<(String, BTreeSet<String>)>>,
}

impl Cluster {
    /// The cluster that a host belongs to. `notice` gets what is waited for. Nothing is run yet.
    pub fn new(access: Access, notice: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { access, notice: Box::new(notice), checked: Checked::default(), listed: Mutex::default() }
    }

    /// Runs by name, or all of them, the newest first; what Slurm knows is asked too.
    fn load(&self, names: &[&str], with_tasks: bool) -> Result<Vec<Run>> {
        let list = || {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            self.read(List { asks_slurm: true, with_tasks, runs: names, job: None })
        };
        let mut runs = list()?;
        let unknown: Vec<(String, String, String)> = runs
            .iter()
            .flat_map(|run| {
                run.unknown().map(|(group, id)| (run.name.clone(), group.to_owned(), id.to_owned()))
            })
            .collect();
        if !unknown.is_empty() {
            self.access.ask("ask Slurm how jobs ended", Ends(unknown))?;
            runs = list()?;
        }
        // Their scripts were killed before they could remove them.
        let ended = runs.iter().filter(|run| run.files.has_secrets && run.state().is_final());
        let ended: Vec<String> = ended.map(|run| run.name.clone()).collect();
        if !ended.is_empty() {
            self.access.ask("remove the secrets of jobs that have ended", Forget(ended))?;
        }
        Ok(runs)
    }

    fn read(&self, list: List) -> Result<Vec<Run>> {
        let with_tasks = list.with_tasks;
        let listed = self.access.ask("read the jobs of the cluster", list)?;
        let run = |(name, files): (String, _)| Run::of(&name, files, &listed.queue, with_tasks);
        let mut runs: Vec<Run> = listed.runs.into_iter().filter_map(run).collect();
        runs.sort_by_cached_key(|run| (Reverse((run.record.submitted, run.job_number())), run.name.clone()));
        Ok(runs)
    }

    /// A run by its name, without asking Slurm; `None` if it does not exist.
    pub(crate) fn read_run(&self, name: &str) -> Result<Option<Run>> {
        let list = List { with_tasks: true, runs: vec![name.to_owned()], ..List::default() };
        Ok(self.read(list)?.pop())
    }

    /// A run by its name or that of its job, with its tasks.
    pub(crate) fn run(&self, name: &str) -> Result<Run> {
        self.named(name, |name| Ok(self.load(&[name], true)?.pop()))
    }

    /// The same without asking Slurm: what its scripts did not write is not known.
    fn run_by_files(&self, name: &str) -> Result<Run> {
        self.named(name, |name| self.read_run(name))
    }

    /// The directories of the cluster that a run writes to.
    fn outputs(&self, run: &Run) -> Result<Vec<Output>> {
        let storage = self.access.settings.storage.iter().map(|(name, path)| (name.clone(), path.clone()));
        let question = Outputs { run: run.name.clone(), storage: storage.collect() };
        self.access.ask("find the outputs of the job", question)
    }

    /// What jobc on the nodes has written of a run.
    fn journal(&self, run: &Run) -> Result<String> {
        if run.record.groups.iter().all(|group| group.direct) {
            return Ok(String::new());
        }
        self.access.ask(&format!("read the events of job `{}`", run.name), Journal(run.name.clone()))
    }

    fn named(&self, name: &str, find: impl Fn(&str) -> Result<Option<Run>>) -> Result<Run> {
        // A name that begins with a dot is not the name of a run, and could be `..`.
        let is_name = !name.starts_with('.');
        if is_name && let Some(run) = find(name)? {
            return Ok(run);
        }
        let list = List { job: Some(name.to_owned()), ..List::default() };
        let of_job = self.read(list)?.into_iter().find(|run| run.record.job == name);
        let newest = match of_job.filter(|_| is_name) {
            Some(run) => find(&run.name)?,
            None => None,
        };
        newest.ok_or_else(|| {
            Error::new(Kind::NotFound, format!("there is no job `{name}` of yours on the cluster"))
                .help("`jobc ps --target TARGET --all` lists the jobs")
        })
    }

    /// Waits until a stopped run has ended and Slurm has cleaned up after it: until then its tasks may write.
    fn wait_until_ended(&self, run: Run) -> Result<()> {
        let (begun, name, grace) = (Instant::now(), run.name.clone(), Duration::from_secs(run.record.grace));
        let deadline = begun + grace + STOP_TIMEOUT;
        let mut is_noticed = false;
        let mut notice = |what: &str| {
            if begun.elapsed() > NOTICE_DELAY && !is_noticed {
                is_noticed = true;
                (self.notice)(&format!("waiting until {what}; Ctrl-C ends only the wait"));
            }
        };
        let tasks = format!("the tasks of job `{name}` have ended (grace period {} s)", grace.as_secs());
        let mut ended = self.watch(run, Some(deadline), &mut |_| {
            notice(&tasks);
            ControlFlow::Continue(())
        })?;
        while let Some(run) = ended {
            if !run.is_active() {
                return Ok(());
            }
            notice(&format!("Slurm has cleaned up after job `{name}`"));
            std::thread::sleep(INTERVALS[0].1);
            ended = self.load(&[&name], false)?.pop().filter(|_| Instant::now() <= deadline);
        }
        Err(Error::new(Kind::State, format!("job `{name}` was told to stop, and has not ended yet"))
            .help("`jobc wait` waits for its end"))
    }

    /// Looks at a run until it has ended, or `progress` ends it, or the deadline passes.
    fn watch(
        &self,
        mut run: Run,
        deadline: Option<Instant>,
        progress: &mut dyn FnMut(&Run) -> ControlFlow<()>,
    ) -> Result<Option<Run>> {
        let since = Instant::now();
        let mut asked = since;
        loop {
            if progress(&run).is_break() {
                return Ok(None);
            }
            if run.state().is_final() {
                return Ok(Some(run));
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Ok(None);
            }
            let interval = INTERVALS.iter().find(|(until, _)| since.elapsed() < *until);
            std::thread::sleep(interval.map_or(QUEUE_INTERVAL, |(_, interval)| *interval));
            let gone = || Error::new(Kind::NotFound, format!("job `{}` was removed", run.name));
            let is_young = since.elapsed() < INTERVALS[0].0;
            if asked.elapsed()
                >= if run.record.is_direct() && is_young { DIRECT_INTERVAL } else { QUEUE_INTERVAL }
            {
                asked = Instant::now();
                run = self.load(&[&run.name], true)?.pop().ok_or_else(gone)?;
            } else {
                let files = self.read_run(&run.name)?.ok_or_else(gone)?.files;
                run.update(files);
            }
        }
    }
}

impl Place for Cluster {
    fn list(&self) -> Result<Vec<JobSummary>> {
        Ok(self.load(&[], false)?.iter().map(Run::summary).collect())
    }

    fn find(&self, name: &str) -> Result<JobSummary> {
        Ok(self.run(name)?.summary())
    }

    fn wait(&self, name: &str, progress: JobProgress<'_>) -> Result<Option<JobSummary>> {
        let mut last: Option<JobSummary> = None;
        let end = self.watch(self.run(name)?, None, &mut |run| {
            let now = run.summary();
            let is_new = last.as_ref().is_none_or(|last| (last.state, last.tasks) != (now.state, now.tasks));
            last = Some(now);
            match &last {
                Some(now) if is_new => progress(now),
                _ => ControlFlow::Continue(()),
            }
        })?;
        Ok(end.map(|run| run.summary()))
    }

    fn stop(&self, name: &str, request: StopRequest<'_>) -> Result<Option<JobSummary>> {
        request.without_grace()?;
        let run = self.run(name)?;
        if !run.state().is_final() {
            let stop = format!("stop job `{}`", run.name);
            self.access.ask(&stop, Stop { run: run.name.clone(), grace: run.record.grace })?;
        }
        if !request.no_wait {
            self.wait_until_ended(run)?;
        }
        Ok(None)
    }

    fn kill(&self, name: &str, request: KillRequest<'_>) -> Result<Option<JobSummary>> {
        request.of_cluster()?;
        let run = self.run(name)?;
        if !run.state().is_final() {
            let kill = Kill { run: run.name.clone(), signal: request.signal.to_string() };
            self.access.ask(&format!("kill job `{}`", run.name), kill)?;
        }
        if request.ends_job() {
            self.wait_until_ended(run)?;
        }
        Ok(None)
    }

    fn hold(&self, name: &str, hold: bool) -> Result<()> {
        let run = self.run(name)?;
        let what = format!("{} job `{}`", if hold { "pause" } else { "resume" }, run.name);
        if let Some(why) = self.access.ask(&what, Hold { run: run.name.clone(), hold })? {
            let message = format!("cannot {what}: Slurm lets only operators suspend what runs: {why}");
            return Err(Error::new(Kind::Unsupported, message).help("a job with `retry: {max: 1, scope: job}` is stopped and starts again at `jobc resume`; this one can be stopped, and submitted again with `--new`"));
        }
        Ok(())
    }

    fn delete(&self, name: &str) -> Result<()> {
        let run = self.run(name)?;
        self.stop(&run.name, StopRequest::default())?;
        self.access.ask(&format!("remove job `{}`", run.name), Remove(run.name.clone()))
    }

    fn reasons(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.run(name)?.reasons())
    }

    fn estimate(&self, name: &str) -> Result<Option<String>> {
        let now = time::now();
        let expected = self.run(name)?.expected_start(now);
        Ok(expected.map(|at| {
            let wait = format_duration(Duration::from_secs(at - now));
            format!("Slurm expects it to start in {wait}, at {}", time::rfc3339(at))
        }))
    }

    fn inspect(&self, name: &str) -> Result<JobDetail> {
        let run = self.run(name)?;
        // A plan that cannot be read leaves them out.
        let mut outputs: Vec<String> =
            self.outputs(&run).unwrap_or_default().into_iter().map(|output| output.path).collect();
        outputs.sort();
        outputs.dedup();
        let facts = outputs.into_iter().map(|path| ("output", path)).collect();
        Ok(JobDetail { reasons: run.reasons(), facts, ..JobDetail::new(run.summary(), run.tasks()) })
    }

    fn events(&self, name: &str) -> Result<Vec<Event>> {
        let run = self.run(name)?;
        Ok(events::of_run(&run, &self.journal(&run)?))
    }

    fn follow_events(&self, name: &str, output: EventOutput<'_>) -> Result<()> {
        let mut shown: Vec<Event> = Vec::new();
        self.watch(self.run(name)?, None, &mut |run| {
            let journal = self.journal(run).unwrap_or_default();
            for event in events::of_run(run, &journal) {
                if !shown.contains(&event) {
                    output(&event)?;
                    shown.push(event);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    fn logs(&self, name: &str, request: &LogRequest, output: LogOutput<'_>) -> Result<()> {
        // Earlier output can be read while Slurm does not answer.
        let run = if request.follow { self.run(name)? } else { self.run_by_files(name)? };
        logs::logs(self, &self.access, &run, request, output)
    }

    fn exec(&self, name: &str, request: &ExecRequest, streams: ExecStreams<'_>) -> Result<u8> {
        exec::exec(&self.access, &self.run(name)?, request, streams)
    }

    fn port_forward(&self, name: &str, request: ForwardRequest<'_>) -> Result<()> {
        port_forward::forward(&self.access, &self.run(name)?, request)
    }

    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied> {
        let run = self.run(name)?;
        if let Err(ended) = exec::running(&run, Some(&request.task)) {
            // Outputs are directories of the cluster, which stay.
            let role = request.task.rsplit_once('-').map_or(request.task.as_str(), |(role, _)| role);
            let outputs = self.outputs(&run).unwrap_or_default();
            let of_role = |output: &&Output| output.role == role || output.role == request.task;
            let place = outputs.iter().filter(of_role).find_map(|output| output.place_of(&request.remote));
            let Some(remote) = place.filter(|_| !request.into_task && ended.kind == Kind::State) else {
                return Err(ended);
            };
            let exec = |command: &ExecRequest, streams: ExecStreams<'_>| {
                exec::on_login(&self.access, command, streams)
            };
            let request = CopyRequest { remote, ..request.clone() };
            return task_copy::copy(&CopyTask { name: &request.task, exec: &exec }, &request);
        }
        let exec = |command: &ExecRequest, streams: ExecStreams<'_>| {
            let command = ExecRequest { task: Some(request.task.clone()), ..command.clone() };
            exec::exec(&self.access, &run, &command, streams)
        };
        task_copy::copy(&CopyTask { name: &request.task, exec: &exec }, request)
    }

    fn capacity(&self) -> Result<Vec<Capacity>> {
        capacity::of_cluster(&self.access)
    }

    fn usage(&self, name: &str) -> Result<Vec<TaskUsage>> {
        usage::of_run(&self.access, &self.run(name)?)
    }
}

impl RemotePlace for Cluster {
    fn delivery(&self) -> Delivery {
        Delivery { sends_files: true, ..Delivery::default() }
    }

    fn is_asked_first(&self) -> bool {
        // Slurm's commands on this host may be absent.
        matches!(self.access.host, Host::Local)
    }

    fn identity(&self, plan: &JobPlan, directory: &Path) -> Result<Identity> {
        let identity = Identity::of(plan);
        // On this host a job reads the files themselves.
        if matches!(self.access.host, Host::Local) {
            return Ok(identity);
        }
        Ok(match self.access.contents(plan, directory)?.digest() {
            Some(content) => identity.with_content(&content),
            None => identity,
        })
    }

    fn runs_of(&self, identity: &Identity) -> Result<Vec<JobSummary>> {
        let is_run = |run: &Run| run.record.job == identity.job && run.record.plan == identity.label();
        // The names of its runs begin with that of the job.
        let of_job = self.read(List { job: Some(identity.job.clone()), ..List::default() })?;
        let all = of_job.iter().map(|run| run.name.clone()).collect();
        *lock(&self.listed) = Some((identity.job.clone(), all));
        let names: Vec<String> = of_job.into_iter().filter(is_run).map(|run| run.name).collect();
        if names.is_empty() {
            return Ok(vec![]);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(self.load(&names, false)?.iter().map(Run::summary).collect())
    }

    fn is_taken(&self, name: &str) -> Result<bool> {
        // A submission has listed them before.
        let listed = lock(&self.listed);
        if let Some((job, names)) = &*listed
            && name.strip_prefix(job.as_str()).is_some_and(|rest| rest.starts_with('-'))
        {
            return Ok(names.contains(name));
        }
        drop(listed);
        Ok(self.read_run(name)?.is_some())
    }

    fn check(&self, submission: &Submission<'_>) -> Result<Vec<Problem>> {
        checks::check(&self.access, &self.checked, submission)
    }

    fn submit(&self, submission: &Submission<'_>) -> std::result::Result<(), SubmitError> {
        submit::submit(&self.access, submission)
    }

    fn joins_matrix(&self) -> bool {
        true
    }

    fn submit_matrix(&self, submissions: &[Submission<'_>]) -> std::result::Result<bool, SubmitError> {
        array::submit(&self.access, submissions)
    }

    fn check_access(&self) -> Result<Vec<AccessCheck>> {
        checks::access(&self.access)
    }
}
