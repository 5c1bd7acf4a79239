//! The supervisor of tasks on the nodes of a Slurm job, which [`node`](crate::node) starts.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use jobc_schema::plan::{JobPlan, Launch, Plan, RolePlan};
use jobc_schema::steps::StepsPlan;
use serde_json::json;

use super::budget_watch::BudgetWatch;
use super::context::JobContext;
use super::initial_record::first_record;
use super::journal::Journal;
use super::spawner::TaskSpawner;
use super::steps::StepSpawner;
use super::task_process::TaskReport;
use super::{Parts, Supervisor, open_files};
use crate::control::{Response, write_line};
use crate::directory::{Directory, replace};
use crate::event::Kind as EventKind;
use crate::host_environment::HostEnvironments;
use crate::lifecycle::{EndRequest, Input, Lifecycle, TaskNumber};
use crate::node::SUPERVISE;
use crate::node::allocation::Allocation;
use crate::node::front;
use crate::node::run::RunDirectory;
use crate::ready::Report;
use crate::record::Record;
use crate::secrets::Secrets;
use crate::spent::Spent;
use crate::submission::Submission;
use jobc_container::state::store::Store;
use jobc_place::exit_code;
use jobc_place::state::JobState;
use jobc_place::time::Time;
use jobc_place::verdict::Judgment;
use jobc_sys::error::{Error, Kind, Result, file_error};
use jobc_sys::id::{JobId, TaskId};
use jobc_sys::signals::Signals;
use jobc_sys::write_atomic::Durability;

/// The third word of [`SUPERVISE`].
const AGAIN: &str = "again";

/// Becomes the supervisor.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.collect();
    let run = || match &words[..] {
        [plan, run] => {
            let words = [SUPERVISE.as_ref(), plan.as_os_str(), run.as_os_str(), AGAIN.as_ref()];
            // Its standard input is this one's.
            let started = Command::new("/proc/self/exe").args(words).spawn();
            started.map(|_| 0).map_err(|error| Error::new(Kind::System, format!("cannot start: {error}")))
        }
        [plan, run, _] => supervise(Path::new(plan), Path::new(run)),
        _ => Err(Error::new(Kind::State, "this command is internal: only `jobc node` starts it")),
    };
    ExitCode::from(run().unwrap_or_else(|error| {
        eprintln!("jobc: {}", super::with_help(&error));
        exit_code::NOT_STARTED
    }))
}

fn supervise(plan: &Path, run: &Path) -> Result<u8> {
    let _ = rustix::process::setsid();
    let failed = |error: std::io::Error| Error::new(Kind::System, error.to_string());
    let client = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from).map_err(failed)?;
    let mut answers = client.try_clone().map_err(failed)?;
    let (steps, job) = front::read(plan)?;
    let mut run = RunDirectory::create(run, &steps.script)?;
    let ranks = steps.roles.iter().filter(|role| role.ranks);
    run.ranks = ranks.filter_map(|role| Some((role.role.clone(), job.role(&role.role)?.instances))).collect();
    let (mut supervisor, bundles) = Supervisor::on_nodes(steps, &job, run, client)?;
    supervisor.step(Input::Prepared);
    let result = supervisor.run_event_loop();
    let end = supervisor.journal.record.end.as_ref();
    if let Some(end) = end.filter(|end| end.exit_code != exit_code::SUCCEEDED) {
        eprintln!("jobc: {}", end.explanation);
        if supervisor.journal.record.state == JobState::TimedOut
            && let Some(run) = &supervisor.run
        {
            run.note(&format!("limit {}", end.cause(JobState::TimedOut)));
        }
    }
    let _ = std::fs::remove_dir_all(&bundles);
    let code = result.as_ref().map_or(exit_code::NOT_STARTED, |&code| supervisor.code_for_slurm(code));
    // The front may have been killed.
    let _ = write_line(&mut answers, &Response::Ended { code });
    result
}

impl Supervisor {
    /// A supervisor of the tasks of a Slurm job, and where copies of bundles are that it removes at the end.
    fn on_nodes(
        steps: StepsPlan,
        job: &JobPlan,
        run: RunDirectory,
        client: UnixStream,
    ) -> Result<(Self, PathBuf)> {
        let signals = Signals::block_forwarded()?;
        let allocation = Allocation::of_this_job(&steps, job, &run)?;
        allocation.unpack_code(&steps, &run)?;
        let addresses = allocation.write(&steps, job, &run)?;
        let plan = own_plan(job, &steps);
        let directory = make_directory(&run, &allocation.slurm_job)?;
        let whole = Plan { version: 1, jobs: vec![plan.clone()] };
        let text = serde_json::to_vec(&whole).map_err(|error| Error::new(Kind::System, error.to_string()))?;
        replace(&directory.plan_file(), &text, Durability::Rename)?;
        let submission = Submission {
            source: run.path.clone(),
            directory: run.path.join("files"),
            attended: true,
            ..Submission::default()
        };
        let lifecycle = Lifecycle::leaving(&plan);
        let mut record = first_record(&directory, &submission, &plan, &lifecycle);
        if let Some(rates) = &mut record.rates {
            // A step may be several instances, or start the others.
            for role in &plan.roles {
                let instances = job.role(&role.name).map_or(0, RolePlan::at_once);
                rates.multiply(&role.name, u64::from(instances.div_ceil(role.instances.max(1)).max(1)));
            }
        }
        let earlier = earlier_starts(&run, &directory);
        let journal = Journal::create(&directory, record)?;
        let context = Arc::new(JobContext {
            containers: Store::new(directory.containers().root()),
            directory,
            submission,
            secrets: Secrets::in_directory(&plan, &allocation.secrets),
            environments: HostEnvironments::default(),
            open_files: open_files::raise_open_files(),
            terminal: Mutex::new(None),
            _images: None,
            provided: OnceLock::new(),
            network: Mutex::new(None),
            stopped: AtomicBool::new(false),
            plan,
        });
        let run = Arc::new(run);
        let bundles = allocation.bundles.clone();
        let tasks: Arc<dyn TaskSpawner> = Arc::new(StepSpawner {
            stop_signals: StepSpawner::stop_signals(&context.plan),
            tasks: lifecycle.tasks().len(),
            tells_attempt: context.plan.preemption.is_some(),
            run: Arc::clone(&run),
            steps,
            allocation,
            addresses,
        });
        let mut supervisor =
            Self::assemble(Parts { context, lifecycle, journal, signals, client, attends: true, tasks })?;
        supervisor.run = Some(run);
        let rates = supervisor.journal.record.rates.as_ref();
        supervisor.budget = BudgetWatch::new(supervisor.context.plan.budget, rates, earlier);
        Ok((supervisor, bundles))
    }

    /// What Slurm shows as the exit code of the job: that of the task that decided how it ended.
    fn code_for_slurm(&self, code: u8) -> u8 {
        let deciding = self.lifecycle.deciding_task().filter(|_| code == exit_code::FAILED);
        deciding.and_then(|task| self.codes.get(&task).copied()).filter(|&code| code > 0).unwrap_or(code)
    }

    /// An agent says something about its task.
    pub(super) fn handle_report(&mut self, task: TaskNumber, report: &TaskReport) {
        let known = &self.lifecycle.tasks()[task];
        let (id, attempt) = (known.id.clone(), known.attempt);
        match *report {
            TaskReport::Started { pid } => {
                if let Some(run) = &self.run {
                    let node = self.journal.record.tasks[task].node.clone().unwrap_or_default();
                    run.task_started(&id, attempt, &node, pid);
                }
                self.journal.task_event(task, EventKind::Started, json!({ "pid": pid }));
            }
            TaskReport::RankStarted { rank, ref node, pid } => {
                if let Some(run) = &self.run {
                    run.task_started(&TaskId::new(&id.role, rank), attempt, node, pid);
                }
                if rank == id.index {
                    self.journal.task_event(task, EventKind::Started, json!({ "pid": pid }));
                }
            }
            TaskReport::RankEnded { rank, code } => {
                if let Some(run) = &self.run {
                    run.task_ended(&TaskId::new(&id.role, rank), attempt, code);
                }
            }
            TaskReport::Ready => self.handle_readiness(Report { task, attempt, ready: Ok(()) }),
            TaskReport::NotReady => {
                let ready = Err("it was not ready in time".to_owned());
                self.handle_readiness(Report { task, attempt, ready });
            }
        }
    }

    /// Writes down for other hosts that an attempt has ended.
    pub(super) fn note_ended(&mut self, task: TaskNumber, code: u8) {
        let Some(run) = &self.run else { return };
        let is_late = matches!(self.lifecycle.end_request(task), Some(EndRequest::Failure(_)));
        let code = if is_late { exit_code::TIMED_OUT } else { code };
        let known = &self.lifecycle.tasks()[task];
        run.step_ended(&known.id, known.attempt, code);
        self.codes.insert(task, code);
    }

    /// Writes down for other hosts what the verdict on it is.
    pub(super) fn note_verdict(&self, task: TaskNumber, verdict: &Judgment) {
        let Some(run) = &self.run else { return };
        // The lifecycle may have begun the next attempt.
        let known = &self.journal.record.tasks[task];
        run.task_judged(&known.task, known.attempt, verdict);
    }

    /// The same of one that did not begin; the output of the Slurm job says why.
    pub(super) fn note_not_started(&mut self, task: TaskNumber, code: u8, why: &str) {
        let Some(run) = &self.run else { return };
        let known = &self.lifecycle.tasks()[task];
        eprintln!("jobc: {}: {why}", known.id);
        let node = self.journal.record.tasks[task].node.as_deref().unwrap_or("-");
        run.task_started(&known.id, known.attempt, node, 0);
        run.task_ended(&known.id, known.attempt, code);
        self.codes.insert(task, code);
    }
}

/// The roles that this Slurm job runs; those of others have ended, or come later.
fn own_plan(job: &JobPlan, steps: &StepsPlan) -> JobPlan {
    let steps_of =
        |name: &str| steps.roles.iter().find(|role| role.role == name).map_or(0, |role| role.steps);
    let is_own = |name: &str| steps_of(name) > 0;
    let mut plan = job.clone();
    plan.roles.retain(|role| is_own(&role.name));
    for role in &mut plan.roles {
        // One step may be all tasks of a role, and one of a launcher starts the others.
        let count = steps_of(&role.name);
        (role.instances, role.launch) = (count, Launch::All);
        for least in [&mut role.completion.min_succeeded, &mut role.completion.min_failed] {
            *least = least.map(|least| least.min(count));
        }
        role.needs.retain(|need| is_own(&need.role));
        for need in &mut role.needs {
            need.min = need.min.min(steps_of(&need.role));
        }
    }
    for stage in &mut plan.stages {
        stage.retain(|name| is_own(name));
    }
    plan.stages.retain(|stage| !stage.is_empty());
    if let Some(distributed) = &mut plan.distributed {
        distributed.members.retain(|member| is_own(&member.role));
    }
    if job.roles.iter().any(|role| steps.roles.iter().all(|own| own.role != role.name)) {
        // That of all Slurm jobs together.
        plan.timeout_seconds = None;
    }
    plan
}

/// What earlier starts of the Slurm job used, by their records. An attempt that a lost node ended counts until its record
/// was written last.
fn earlier_starts(run: &RunDirectory, own: &Directory) -> Spent {
    let mut spent = Spent::default();
    for number in 1..own.id.run {
        let id = JobId { name: run.script.clone(), run: number };
        let path = run.path.join("records").join(id.to_string());
        let directory = Directory { id, state: own.state.clone(), record: path };
        let Ok(Some(record)) = Record::read(&directory) else { continue };
        let written = std::fs::metadata(directory.record_file()).and_then(|file| file.modified());
        if let (Some(rates), Ok(written)) = (&record.rates, written) {
            spent.add(&Spent::of(&record, rates, Time::of(written)));
        }
    }
    spent
}

/// The directories of this start of the Slurm job: its records stay with those of the others, and the rest is on this node.
fn make_directory(run: &RunDirectory, slurm_job: &str) -> Result<Directory> {
    let restarts = std::env::var("SLURM_RESTART_COUNT").ok().and_then(|count| count.parse().ok());
    let id = JobId { name: run.script.clone(), run: restarts.unwrap_or(0_u32).saturating_add(1) };
    let temporary = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let state = temporary.join(format!("jobc-node-{slurm_job}")).join(id.to_string());
    let record = run.path.join("records").join(id.to_string());
    for path in [&state, &record] {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| file_error("create the directory", path, &error))?;
    }
    // What is left of a start that was killed.
    let _ = std::fs::remove_file(state.join("control"));
    Ok(Directory { id, state, record })
}
