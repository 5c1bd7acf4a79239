//! The supervisor of a job: one small process that makes its tasks' containers, watches them, and writes down what
//! happens.
//!
//! [`Lifecycle`](crate::lifecycle) decides what to do, [`context`] what a task gets; here is the event loop in between.
//! One thread sleeps on one epoll set: exits of processes, tasks' output, commands that connect, messages of the
//! threads that do slow work. All containers end with the supervisor (`PR_SET_PDEATHSIG`, PID namespaces), so nothing
//! runs without supervision; [`recover`](crate::recover) removes what it leaves on disk when it is killed.

mod actions;
mod attempt;
mod budget;
mod budget_watch;
mod container_process;
mod context;
mod control_socket;
mod frames;
mod gpu_turns;
mod host_programs;
mod initial_record;
mod journal;
mod mailbox;
mod message;
mod node_faults;
mod node_watch;
mod numbers;
pub mod on_nodes;
mod open_files;
mod output;
mod poll;
mod preparation;
mod prober;
mod program_error;
mod readiness;
mod rendezvous;
mod scope;
mod spawner;
mod stalls;
pub mod start;
mod steps;
mod suspension;
mod task_process;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jobc_schema::idle::IdleAction;
use jobc_schema::plan::JobPlan;
use serde_json::json;

use crate::admission::ledger::Ledger;
use crate::admission::ledger::turns::Turns;
use crate::admission::rules::Rules;
use crate::admission::{Admission, claim, past_use};
use crate::clean::release_reserve;
use crate::directory::Directory;
use crate::event::Kind as EventKind;
use crate::host_environment::{Caller, HostEnvironments};
use crate::lifecycle::{AttemptFacts, Input, Lifecycle, TaskNumber};
use crate::logs;
use crate::metrics::Sampler;
use crate::node::run::RunDirectory;
use crate::notice::Notices;
use crate::provision;
use crate::ready::Prober;
use crate::secrets::Secrets;
use crate::spent::Spent;
use crate::submission::Submission;
use crate::user_metrics::LogMetrics;
use attempt::Attempt;
use budget_watch::BudgetWatch;
use context::JobContext;
use control_socket::{ClientEvent, ControlSocket};
pub use host_programs::missing_on_host;
use initial_record::{first_record, outputs};
use jobc_container::process::Exit;
use jobc_container::state::store::Store;
use jobc_place::exit_code;
use jobc_place::job::End;
use jobc_place::state::JobState;
use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind, Result, file_error};
use jobc_sys::signals::{Signal, Signals};
use jobc_sys::syscall::linux::Linux;
use jobc_sys::syscall::{Kernel as _, Prctl};
use jobc_sys::write_atomic::Durability;
use journal::Journal;
pub use mailbox::{Mailbox, Sender};
use message::{Message, PreparedHost};
use node_watch::NodeWatch;
use poll::{EventSource, Poll};
use rendezvous::RendezvousWatch;
use spawner::{ContainerSpawner, Spawner, TaskSpawner};
use stalls::Stalls;

/// The input of a supervisor from the command that started it.
#[derive(Debug)]
pub struct InheritedFds {
    /// The job's lock, held.
    pub lock: File,
    /// A connection to the command, which waits for the first answer.
    pub client: UnixStream,
    /// The receiver of the terminal of the submission's task, or the standard input of that task.
    pub terminal: Option<OwnedFd>,
}

/// An attempt whose process has ended.
#[derive(Debug)]
struct EndedAttempt {
    exit: Exit,
    /// What the host knows about it.
    note: Option<String>,
    /// Its place in the order of the ends.
    place: u64,
    /// Whether its container is removed.
    is_removed: bool,
    /// What else was seen of it, once that is so.
    seen: AttemptFacts,
    /// Until when its report waits for that of a peer: by its last lines, a peer was gone.
    held_until: Option<Instant>,
}

impl EndedAttempt {
    fn has_failed(&self) -> bool {
        self.exit != Exit::Code(exit_code::SUCCEEDED)
    }
}

/// A job's supervisor at work.
#[derive(Debug)]
struct Supervisor {
    directory: Directory,
    context: Arc<JobContext>,
    lifecycle: Lifecycle,
    journal: Journal,
    poll: Poll,
    signals: Signals,
    mailbox: Mailbox<Message>,
    control_socket: ControlSocket,
    spawner: Spawner,
    /// The running attempts, by task.
    attempts: BTreeMap<TaskNumber, Attempt>,
    /// Attempts whose containers are being removed.
    ending: BTreeMap<TaskNumber, EndedAttempt>,
    /// How many attempts have ended.
    ends: u64,
    /// Attempts whose program could not be executed, while their containers are removed: the exit code, and why.
    failing: BTreeMap<TaskNumber, (u8, String)>,
    /// The members that have joined the rendezvous, if it can be checked.
    rendezvous: Option<RendezvousWatch>,
    /// Checks whether tasks are ready.
    prober: Prober,
    /// The tasks' logs.
    logs: Vec<logs::Writer>,
    /// Tasks that wrote a while ago, and when the beginnings of their lines are to be shown.
    partial_lines: BTreeMap<TaskNumber, Instant>,
    /// The metrics of the job file that are lines of the output.
    log_metrics: Arc<LogMetrics>,
    /// When the metrics that are in files are read next.
    next_reading: Option<Instant>,
    /// The resource usage of tasks.
    sampler: Sampler,
    /// What the job uses of its budget.
    budget: Option<BudgetWatch>,
    /// Whether tasks make progress.
    stalls: Stalls,
    node_watch: NodeWatch,
    /// The buffer for tasks' output.
    buffer: Vec<u8>,
    /// The thread that prepares the job.
    preparation: Option<JoinHandle<()>>,
    /// The host resources of the job while it runs.
    prepared: Option<PreparedHost>,
    /// Its part in the turns on its GPUs, if it shares them by time.
    turns: Option<Turns>,
    /// When to look whether another job waits for GPUs that this one has above those that it asked for.
    next_growth: Option<Instant>,
    /// A suspended job is to be resumed as soon as it has given its resources back.
    resume_wanted: bool,
    started: Instant,
    /// The run of a Slurm job, if the tasks are on its nodes.
    run: Option<Arc<RunDirectory>>,
    /// How the last attempts of tasks ended there.
    codes: BTreeMap<TaskNumber, u8>,
    /// How it ended.
    end: Option<(JobState, End)>,
}

/// Supervises a job from its submission to its end; returns what `jobc run` exits with.
///
/// # Errors
///
/// Why it could not start; the command that started it gets the same error.
pub fn run(directory: Directory, inherited: InheritedFds) -> Result<u8> {
    let InheritedFds { lock, client, terminal } = inherited;
    let mut stream = client.try_clone().map_err(|error| Error::new(Kind::System, error.to_string()))?;
    let begun = Supervisor::new(directory, client, terminal);
    let answered = crate::control::write_line(
        &mut stream,
        &control_socket::to_response(&begun.as_ref().map(drop).map_err(Error::clone)),
    );
    let mut supervisor = begun?;
    drop((answered, stream));
    let code = supervisor.run_event_loop();
    // The lock is released last: a process that gets it finds a job that has ended.
    drop(lock);
    code
}

/// What a supervisor is made of.
struct Parts {
    context: Arc<JobContext>,
    lifecycle: Lifecycle,
    journal: Journal,
    signals: Signals,
    client: UnixStream,
    /// The end of the client is that of the job.
    attends: bool,
    tasks: Arc<dyn TaskSpawner>,
}

impl Supervisor {
    fn new(directory: Directory, client: UnixStream, terminal: Option<OwnedFd>) -> Result<Self> {
        // A new session: the terminal's signals go only to the command in the foreground.
        let _ = rustix::process::setsid();
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        let submission: Submission = read(&directory.submission_file())?;
        // Before anything else that would stay in this process's current cgroup.
        let limits = scope::enter(&directory.id, &submission)?;
        // Before there is a secret in it: no process of this user can inspect this process, and it dumps no core.
        // Programs that it executes are not affected (prctl(2), PR_SET_DUMPABLE), and the code that creates containers
        // handles its own files.
        Linux
            .prctl(Prctl::NotDumpable)
            .map_err(|errno| Error::system("hide this process's memory", errno))?;
        let signals = Signals::block_forwarded()?;
        let plan: JobPlan = read(&directory.plan_file())?;
        // Before the command that submitted the job gets the answer, which has the store open until then.
        let images = provision::pin_images(&submission)?;
        let secrets = Secrets::read(&plan, &submission.directory)?;
        let caller = Caller::of_process(submission.working_directory.clone());
        let environments = HostEnvironments::read(&plan, &caller)?;
        let open_files = open_files::raise_open_files();
        let attends = submission.attended;
        let lifecycle = Lifecycle::new(&plan);
        // Before the command that submitted the job gets the answer, which reserves the ports until then.
        let ledger = Ledger::standard(&directory.parents())?;
        let ledger_note = ledger.note.clone();
        let rules = Rules::of_host()?;
        let past =
            rules.fair_share.map(|share| past_use::of_records(&directory.parents(), share, Time::now()));
        let past = past.unwrap_or_default();
        let admission = Admission::enter(ledger, rules, &directory.id, &claim::of(&plan), past)?;
        let mut record = first_record(&directory, &submission, &plan, &lifecycle);
        match limits {
            scope::Entered::Own => {}
            scope::Entered::Scope(name) => record.scope = Some(name),
            scope::Entered::Nowhere(why) => record.notes.push(why),
        }
        record.notes.extend(ledger_note);
        let notices = Notices::new(&plan.notify, &secrets, &directory, submission.directory.clone())?;
        let mut journal = Journal::create(&directory, record)?;
        journal.set_notices(notices);
        let context = Arc::new(JobContext {
            containers: Store::new(directory.containers().root()),
            directory,
            submission,
            plan,
            open_files,
            terminal: Mutex::new(terminal),
            _images: images,
            provided: OnceLock::new(),
            network: Mutex::new(None),
            stopped: AtomicBool::new(false),
            secrets,
            environments,
        });
        let tasks: Arc<dyn TaskSpawner> = Arc::new(ContainerSpawner(Arc::clone(&context)));
        let rendezvous = RendezvousWatch::new(&context.plan, &lifecycle);
        let mut supervisor =
            Self::assemble(Parts { context, lifecycle, journal, signals, client, attends, tasks })?;
        supervisor.rendezvous = rendezvous;
        let sender = supervisor.mailbox.sender();
        supervisor.preparation = Some(preparation::start(&supervisor.context, admission, &sender));
        Ok(supervisor)
    }

    /// A supervisor that waits for its first event.
    fn assemble(parts: Parts) -> Result<Self> {
        let Parts { context, lifecycle, mut journal, signals, client, attends, tasks } = parts;
        let directory = context.directory.clone();
        let poll = Poll::new()?;
        poll.add(&signals, EventSource::Signal)?;
        let mailbox = Mailbox::new()?;
        poll.add(&mailbox, EventSource::Message)?;
        journal.job_event(EventKind::Submitted, json!({ "tasks": lifecycle.tasks().len() }));
        let redacted = context.secrets.values().chain(context.environments.secrets());
        let masks = Arc::new(logs::Redactor::new(redacted));
        let log = |task: &crate::lifecycle::Task| {
            logs::Writer::open(&directory.logs(&task.id), logs::Limits::default(), Arc::clone(&masks))
        };
        let logs = lifecycle.tasks().iter().map(log).collect();
        let socket = ControlSocket::listen(&directory, &poll, client, attends)?;
        let ids = lifecycle.tasks().iter().map(|task| task.id.clone()).collect();
        let prober = prober::create_prober(&context, ids, mailbox.sender());
        let spawner = Spawner::start(&tasks, &context, &mailbox.sender());
        let has_gpus = context.plan.roles.iter().any(|role| role.gpus().is_some());
        let mut sampler = Sampler::new(&directory, has_gpus);
        if let Some(idle) = context.plan.idle {
            sampler.watch_idle(idle);
        }
        let rates = journal.record.rates.as_ref();
        let budget = BudgetWatch::new(context.plan.budget, rates, Spent::default());
        Ok(Self {
            budget,
            log_metrics: Arc::new(LogMetrics::of(&context.plan)?),
            next_reading: Self::first_reading(&context.plan),
            context,
            lifecycle,
            journal,
            poll,
            signals,
            mailbox,
            control_socket: socket,
            spawner,
            attempts: BTreeMap::new(),
            ending: BTreeMap::new(),
            ends: 0,
            failing: BTreeMap::new(),
            rendezvous: None,
            prober,
            logs,
            partial_lines: BTreeMap::new(),
            sampler,
            stalls: Stalls::default(),
            node_watch: NodeWatch::default(),
            buffer: vec![0; 65536],
            preparation: None,
            prepared: None,
            turns: None,
            next_growth: None,
            resume_wanted: false,
            started: Instant::now(),
            run: None,
            codes: BTreeMap::new(),
            end: None,
            directory,
        })
    }

    /// The event loop: sleeps and handles events until the job has ended.
    fn run_event_loop(&mut self) -> Result<u8> {
        while self.end.is_none() {
            for ready in self.poll.wait(self.poll_timeout())? {
                match ready {
                    EventSource::Signal => self.handle_signals(),
                    EventSource::Message => self.handle_messages(),
                    // It is looked at below.
                    EventSource::Turn => {}
                    EventSource::Listener => self.control_socket.accept(&self.poll),
                    EventSource::Client(number) => self.handle_client(number),
                    EventSource::Process(task) => self.handle_exit(task),
                    EventSource::Output(task, stream) => {
                        self.read_output(task, stream);
                    }
                }
            }
            if self.lifecycle.next_tick().is_some_and(|tick| tick <= self.now()) {
                self.step(Input::Tick);
            }
            self.report_ended();
            self.look_at_turns();
            self.look_at_growth();
            self.flush_partial_lines();
            self.sample();
            self.look_at_budget();
            self.look_at_progress();
            self.look_at_members();
            self.read_files();
            self.journal.flush(&self.lifecycle);
        }
        self.finish()
    }

    /// The time since the supervisor began, by a clock that does not jump.
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// How long nothing is due.
    fn poll_timeout(&self) -> Option<Duration> {
        let tick = self.lifecycle.next_tick().map(|tick| tick.saturating_sub(self.now()));
        let journal = self.journal.due().map(|due| due.saturating_duration_since(Instant::now()));
        let settling = self.partial_line_deadline().map(|due| due.saturating_duration_since(Instant::now()));
        let sample = self.sampler.next().map(|due| due.saturating_duration_since(Instant::now()));
        let members = self.next_look_at_members().map(|due| due.saturating_duration_since(Instant::now()));
        let reading = self.next_reading().map(|due| due.saturating_duration_since(Instant::now()));
        let held = self.held_until().map(|due| due.saturating_duration_since(Instant::now()));
        let count = self.next_count().map(|due| due.saturating_duration_since(Instant::now()));
        let turn = self.turns.as_ref().and_then(Turns::due);
        let turn = turn.map(|due| due.saturating_duration_since(Instant::now()));
        let growth = self.next_growth.map(|due| due.saturating_duration_since(Instant::now()));
        [tick, journal, settling, sample, members, reading, held, count, turn, growth]
            .into_iter()
            .flatten()
            .min()
    }

    fn handle_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            match signal {
                Signal::INT | Signal::TERM => {
                    self.step(Input::Stop {
                        grace: None,
                        why: format!("the supervisor received SIG{signal}"),
                    });
                }
                Signal::QUIT => self.step(Input::Kill { why: "the supervisor received SIGQUIT".to_owned() }),
                _ => {}
            }
        }
    }

    fn handle_messages(&mut self) {
        self.mailbox.clear_wakeup();
        while let Some(mail) = self.mailbox.next() {
            match mail {
                Message::Preparation(news) => self.handle_preparation(news),
                Message::Prepared(Ok(prepared)) => self.start_tasks(*prepared),
                Message::Readmitted(Ok(prepared)) => {
                    self.prepared = Some(*prepared);
                    self.journal.job_event(EventKind::Resumed, json!({}));
                    self.step(Input::Readmitted);
                    self.enter_turns();
                }
                Message::Prepared(Err(error)) | Message::Readmitted(Err(error)) => {
                    self.step(Input::Broken { why: with_help(&error) });
                }
                Message::Created { task, attempt, held: Ok(held) } => {
                    self.handle_created(task, attempt, *held);
                }
                Message::Created { task, held: Err(error), .. } => self.not_started(task, &error),
                Message::Readiness(report) => self.handle_readiness(report),
                Message::Numbers { task, attempt, numbers } => {
                    self.note_numbers(task, attempt, numbers, false);
                }
                Message::Examined(request, examination) => self.handle_examined(&request, &examination),
                Message::Removed { task, left, numbers, discarded } => {
                    self.handle_removed(task, &left, numbers, &discarded);
                }
            }
        }
    }

    fn handle_client(&mut self, number: u32) {
        for event in self.control_socket.read_requests(number, &self.poll) {
            match event {
                ClientEvent::Request(request) => {
                    let result = self.carry_out_request(request);
                    // A client that reads the record after the answer sees the result.
                    self.journal.sync_states(&self.lifecycle);
                    let _ = self.journal.write(Durability::Rename);
                    self.control_socket.respond(number, &result);
                }
                ClientEvent::Disconnected if !self.control_socket.has_attached_client() => {
                    self.step(Input::Stop {
                        grace: None,
                        why: "the foreground command has exited".to_owned(),
                    });
                }
                ClientEvent::Disconnected => {}
            }
        }
    }

    /// Samples the tasks, if a sample is due.
    fn sample(&mut self) {
        if self.sampler.next().is_some_and(|due| due <= Instant::now())
            && let Err(error) = self.sampler.sample()
        {
            self.journal.note(format!("samples are lost: {error}"));
        }
        self.look_at_node();
        self.look_at_idle_gpus();
        for (id, kills) in self.sampler.take_oom_kills() {
            if let Some(task) = self.lifecycle.tasks().iter().position(|task| task.id == id) {
                self.note_oom_kills(task, kills);
            }
        }
    }

    /// Reports or stops a job whose GPUs are idle. While the user has paused it, they may be.
    fn look_at_idle_gpus(&mut self) {
        let Some(idle) = self.context.plan.idle else { return };
        if self.journal.record.state == JobState::Paused {
            self.sampler.reset_idle();
        }
        if !self.sampler.take_idle() {
            return;
        }
        let detail = json!({ "percent": idle.gpu, "seconds": idle.after.0, "action": idle.action });
        self.journal.job_event(EventKind::Idle, detail);
        let why = format!("its GPUs were used less than {} % for {}, by `idle`", idle.gpu, idle.after);
        match idle.action {
            IdleAction::Report => self.journal.note(why),
            IdleAction::Stop => self.step(Input::Stop { grace: None, why }),
        }
    }

    /// Records how the job ended and releases its resources.
    fn finish(&mut self) -> Result<u8> {
        self.context.stopped.store(true, Ordering::Release);
        if let Some(preparation) = self.preparation.take() {
            // Dropping its remaining messages releases what they hold.
            let _ = preparation.join();
        }
        self.context.drop_network();
        release_reserve(&self.directory);
        let (state, end) = self.end.take().unwrap_or_else(|| {
            let explanation = "lost".to_owned();
            (
                JobState::Lost,
                End { explanation, exit_code: exit_code::NOT_STARTED, task: None, verdict: None },
            )
        });
        let outputs = outputs(&self.context.plan);
        self.journal.job_event(EventKind::Saved, json!({ "outputs": outputs }));
        let mut detail =
            json!({ "exit_code": end.exit_code, "explanation": end.explanation, "state": state.as_str() });
        if let Some(verdict) = &end.verdict {
            detail["verdict"] = json!(verdict);
        }
        self.journal.job_event(EventKind::Ended, detail);
        self.journal.sync_states(&self.lifecycle);
        let code = end.exit_code;
        let record = self.journal.record_mut();
        record.state = state;
        record.ended = Some(Time::now());
        record.supervisor = None;
        record.end = Some(end);
        // The record says that the job has ended. On a full disk, this waits a while for free space.
        for _ in 0..30 {
            if self.journal.write(Durability::Disk).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        self.prepared = None;
        if let Err(error) = crate::provision::release(&self.directory) {
            journal::log_line(&error.to_string());
        }
        if !self.context.submission.keep {
            // Usually there is none left; one that could not be removed before gets another try.
            for error in crate::clean::remove_containers(&self.directory) {
                journal::log_line(&error);
            }
            crate::clean::remove_state(&self.directory)?;
        }
        Ok(code)
    }
}

fn read<T: for<'de> serde::Deserialize<'de>>(path: &std::path::Path) -> Result<T> {
    let text = std::fs::read(path).map_err(|error| file_error("read", path, &error))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::new(Kind::State, format!("cannot read `{}`: {error}", path.display())))
}

/// An error with its advice, in one line.
fn with_help(error: &Error) -> String {
    error.hints.iter().fold(error.to_string(), |text, hint| text + "; " + hint)
}
