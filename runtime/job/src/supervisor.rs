//! The supervisor of a job: one small process that makes its tasks' containers, watches them, and writes down what happens.
//!
//! What to do is decided by [`Lifecycle`](crate::lifecycle), what a task gets by [`share`]; here is the loop in between.
//! One thread sleeps on one epoll set: ends of processes, tasks' output, commands that connect, messages of the threads
//! that do what takes its time. The supervisor's end is that of all containers (`PR_SET_PDEATHSIG`, pid namespaces), so
//! nothing runs that nobody watches; what it leaves on disk when it is killed, [`lost`](crate::recover) removes.

mod attempt;
mod course;
mod journal;
mod mail;
mod mailbox;
mod maker;
mod open_files;
mod output;
mod planned;
mod poll;
mod preparation;
mod prober;
mod readiness;
mod scope;
mod share;
pub mod start;
mod visitors;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jobc_schema::plan::JobPlan;
use serde_json::json;

use crate::clean::release_reserve;
use crate::event::Kind as EventKind;
use crate::folder::Folder;
use crate::lifecycle::{Input, Lifecycle, TaskNumber};
use crate::logs;
use crate::metrics::Sampler;
use crate::provision;
use crate::ready::Prober;
use crate::record::{End, JobState};
use crate::secrets::Secrets;
use crate::submission::Submission;
use crate::time::Time;
use attempt::Attempt;
use jobc_container::process::Exit;
use jobc_container::state::store::Store;
use jobc_sys::error::{Error, Kind, Result, machine};
use jobc_sys::signals::{Signal, Signals};
use jobc_sys::syscall::linux::Linux;
use jobc_sys::syscall::{Kernel as _, Prctl};
use jobc_sys::write_atomic::Durability;
use journal::Journal;
use mail::{Mail, Prepared};
pub use mailbox::{Mailbox, Sender};
use maker::Maker;
use planned::{first_record, outputs};
use poll::{Poll, Ready};
use share::Share;
use visitors::{Said, Visitors};

/// What a supervisor has of the command that started it.
#[derive(Debug)]
pub struct Inherited {
    /// The job's lock, held.
    pub lock: File,
    /// A connection to the command, which waits for the first answer.
    pub client: UnixStream,
    /// Where the terminal of the submission's task goes.
    pub terminal: Option<OwnedFd>,
}

/// A job's supervisor at work.
#[derive(Debug)]
struct Supervisor {
    folder: Folder,
    share: Arc<Share>,
    lifecycle: Lifecycle,
    journal: Journal,
    poll: Poll,
    signals: Signals,
    mailbox: Mailbox<Mail>,
    visitors: Visitors,
    maker: Maker,
    /// What runs, by task.
    attempts: BTreeMap<TaskNumber, Attempt>,
    /// Attempts whose containers are being removed: how they ended, and what the machine knows of it.
    ending: BTreeMap<TaskNumber, (Exit, Option<String>)>,
    /// Attempts whose program could not be executed, while their containers are removed: the exit code, and why.
    failing: BTreeMap<TaskNumber, (u8, String)>,
    /// Looks whether tasks are ready.
    prober: Prober,
    /// The tasks' logs.
    logs: Vec<logs::Writer>,
    /// Tasks that wrote a while ago, and when the beginnings of their lines are to be shown.
    unsettled: BTreeMap<TaskNumber, Instant>,
    /// What tasks use.
    sampler: Sampler,
    /// What tasks write goes through it.
    buffer: Vec<u8>,
    /// The thread that prepares the job.
    preparation: Option<JoinHandle<()>>,
    /// What the job has of the machine while it runs.
    prepared: Option<Prepared>,
    began: Instant,
    /// How it ended.
    end: Option<(JobState, End)>,
}

/// Supervises a job from its submission to its end; returns what `jobc run` exits with.
///
/// # Errors
///
/// Why it could not begin; the command that started it is told so as well.
pub fn run(folder: Folder, inherited: Inherited) -> Result<u8> {
    let Inherited { lock, client, terminal } = inherited;
    let mut told = client.try_clone().map_err(|error| Error::new(Kind::Machine, error.to_string()))?;
    let begun = Supervisor::begin(folder, client, terminal);
    let answered = crate::control::write_line(
        &mut told,
        &visitors::told(&begun.as_ref().map(drop).map_err(Error::clone)),
    );
    let mut supervisor = begun?;
    drop((answered, told));
    let code = supervisor.attend();
    // The lock is the last to go: who gets it finds a job that has ended.
    drop(lock);
    code
}

impl Supervisor {
    fn begin(folder: Folder, client: UnixStream, terminal: Option<OwnedFd>) -> Result<Self> {
        // A session of its own: what the terminal sends goes to the command in the foreground alone.
        let _ = rustix::process::setsid();
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        let submission: Submission = read(&folder.submission_file())?;
        // Before there is anything else that would stay where this process is now.
        let (scope, without) = scope::enter(&folder.id, &submission)?;
        // Before there is a secret in it: nobody of this user's looks into this process, and it leaves no core. What it
        // executes is not affected (prctl(2), PR_SET_DUMPABLE), and what it makes containers with minds its own files.
        Linux
            .prctl(Prctl::NotDumpable)
            .map_err(|errno| Error::machine("hide this process's memory", errno))?;
        let signals = Signals::take()?;
        let plan: JobPlan = read(&folder.plan_file())?;
        // Before the command that submitted the job hears of it, which has the store open until then.
        let images = provision::hold(&submission)?;
        let secrets = Secrets::read(&plan, &submission.folder)?;
        let open_files = open_files::raise_open_files();
        let attends = submission.attended;
        let poll = Poll::new()?;
        poll.add(&signals, Ready::Signal)?;
        let mailbox = Mailbox::new()?;
        poll.add(&mailbox, Ready::Mail)?;
        let lifecycle = Lifecycle::new(&plan);
        let mut record = first_record(&folder, &submission, &plan, &lifecycle);
        record.scope = scope;
        record.notes.extend(without);
        let mut journal = Journal::begin(&folder, record)?;
        journal.job(EventKind::Submitted, json!({ "tasks": lifecycle.tasks().len() }));
        let share = Arc::new(Share {
            containers: Store::new(folder.containers().root()),
            folder: folder.clone(),
            submission,
            plan,
            open_files,
            terminal: Mutex::new(terminal),
            _images: images,
            provided: OnceLock::new(),
            network: Mutex::new(None),
            stopped: AtomicBool::new(false),
            secrets,
        });
        let masks = Arc::new(logs::Masks::new(share.secrets.values()));
        let log = |task: &crate::lifecycle::Task| {
            logs::Writer::open(&folder.logs(&task.id), logs::Limits::default(), Arc::clone(&masks))
        };
        let logs = lifecycle.tasks().iter().map(log).collect();
        let visitors = Visitors::listen(&folder, &poll, client, attends)?;
        let ids = lifecycle.tasks().iter().map(|task| task.id.clone()).collect();
        let prober = prober::prober(&share, ids, mailbox.sender());
        let maker = Maker::start(&share, &mailbox.sender());
        let preparation = Some(preparation::start(&share, &mailbox.sender()));
        let mut gpus = share.plan.roles.iter().filter_map(|role| role.resources.gpu.as_ref());
        let has_gpus = gpus.any(|gpu| gpu.count > 0);
        Ok(Self {
            share,
            lifecycle,
            journal,
            poll,
            signals,
            mailbox,
            visitors,
            maker,
            attempts: BTreeMap::new(),
            ending: BTreeMap::new(),
            failing: BTreeMap::new(),
            prober,
            logs,
            unsettled: BTreeMap::new(),
            sampler: Sampler::new(&folder, has_gpus),
            buffer: vec![0; 65536],
            preparation,
            prepared: None,
            began: Instant::now(),
            end: None,
            folder,
        })
    }

    /// The loop: sleeps, and deals with what became ready, until the job is over.
    fn attend(&mut self) -> Result<u8> {
        while self.end.is_none() {
            for ready in self.poll.wait(self.patience())? {
                match ready {
                    Ready::Signal => self.hear_signals(),
                    Ready::Mail => self.read_mail(),
                    Ready::Visitor => self.visitors.accept(&self.poll),
                    Ready::Client(number) => self.hear(number),
                    Ready::Process(task) => self.see_the_end(task),
                    Ready::Output(task, stream) => {
                        self.read_output(task, stream);
                    }
                }
            }
            if self.lifecycle.next_tick().is_some_and(|tick| tick <= self.now()) {
                self.step(Input::Tick);
            }
            self.settle_output();
            self.sample();
            self.journal.flush(&self.lifecycle);
        }
        self.finish()
    }

    /// The time since the supervisor began, by a clock that does not jump.
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// How long nothing is due.
    fn patience(&self) -> Option<Duration> {
        let tick = self.lifecycle.next_tick().map(|tick| tick.saturating_sub(self.now()));
        let journal = self.journal.due().map(|due| due.saturating_duration_since(Instant::now()));
        let settling = self.settling().map(|due| due.saturating_duration_since(Instant::now()));
        let sample = self.sampler.next().map(|due| due.saturating_duration_since(Instant::now()));
        [tick, journal, settling, sample].into_iter().flatten().min()
    }

    fn hear_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            match signal {
                Signal::INT | Signal::TERM => {
                    self.step(Input::Stop { grace: None, why: format!("the supervisor got SIG{signal}") });
                }
                Signal::QUIT => self.step(Input::Kill { why: "the supervisor got SIGQUIT".to_owned() }),
                _ => {}
            }
        }
    }

    fn read_mail(&mut self) {
        self.mailbox.hush();
        while let Some(mail) = self.mailbox.next() {
            match mail {
                Mail::Preparing(news) => self.note_preparation(news),
                Mail::Prepared(Ok(prepared)) => self.begin_tasks(*prepared),
                Mail::Prepared(Err(error)) => self.step(Input::Broken { why: with_help(&error) }),
                Mail::Made { task, attempt, held: Ok(held) } => self.take_in(task, attempt, *held),
                Mail::Made { task, held: Err(error), .. } => self.not_started(task, &error),
                Mail::Looked(report) => self.take_report(report),
                Mail::Removed { task, left } => self.removed(task, &left),
            }
        }
    }

    fn hear(&mut self, number: u32) {
        for said in self.visitors.hear(number, &self.poll) {
            match said {
                Said::Asks(request) => {
                    let result = self.carry_out_request(request);
                    // Who asks, and looks then, sees what came of it.
                    self.journal.follow(&self.lifecycle);
                    let _ = self.journal.write(Durability::Rename);
                    self.visitors.answer(number, &result);
                }
                Said::Deserted if !self.visitors.are_attending() => {
                    self.step(Input::Stop {
                        grace: None,
                        why: "the command in the foreground is gone".to_owned(),
                    });
                }
                Said::Deserted => {}
            }
        }
    }

    /// Takes a sample of what tasks use, where one is due.
    fn sample(&mut self) {
        if self.sampler.next().is_some_and(|due| due <= Instant::now())
            && let Err(error) = self.sampler.sample()
        {
            self.journal.note(format!("samples are lost: {error}"));
        }
    }

    /// Writes down how the job ended, and removes what it had of the machine.
    fn finish(&mut self) -> Result<u8> {
        self.share.stopped.store(true, Ordering::Release);
        if let Some(preparation) = self.preparation.take() {
            // What it has made is given back with the messages that it has left.
            let _ = preparation.join();
        }
        self.share.leave_network();
        release_reserve(&self.folder);
        let (state, end) = self.end.take().unwrap_or_else(|| {
            (JobState::Lost, End { explanation: "lost".to_owned(), exit_code: 125, task: None })
        });
        let outputs = outputs(&self.share.plan);
        self.journal.job(EventKind::Saved, json!({ "outputs": outputs }));
        let detail =
            json!({ "exit_code": end.exit_code, "explanation": end.explanation, "state": state.as_str() });
        self.journal.job(EventKind::Ended, detail);
        self.journal.follow(&self.lifecycle);
        let code = end.exit_code;
        let record = self.journal.change();
        record.state = state;
        record.ended = Some(Time::now());
        record.supervisor = None;
        record.end = Some(end);
        // The record is what says that the job is over: a full disk gets some time to be emptied.
        for _ in 0..30 {
            if self.journal.write(Durability::Disk).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        self.prepared = None;
        if let Err(error) = crate::provision::release(&self.folder) {
            journal::say(&error.to_string());
        }
        if !self.share.submission.keep {
            // As a rule there is none any more; one that could not be removed before gets another try.
            for error in crate::clean::remove_containers(&self.folder) {
                journal::say(&error);
            }
            crate::clean::remove_state(&self.folder)?;
        }
        Ok(code)
    }
}

fn read<T: for<'de> serde::Deserialize<'de>>(path: &std::path::Path) -> Result<T> {
    let text = std::fs::read(path).map_err(|error| machine("read", path, &error))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::new(Kind::State, format!("cannot read `{}`: {error}", path.display())))
}

/// An error with its advice, in one line.
fn with_help(error: &Error) -> String {
    match &error.help {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    }
}
