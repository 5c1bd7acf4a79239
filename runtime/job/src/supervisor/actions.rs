//! Sends events to the job's lifecycle, and carries out its decisions.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::attempt::{Attempt, code_of};
use super::container_process::exit_note;
use super::message::{FileNumber, PendingTask, PreparationEvent, PreparedHost};
use super::spawner::SpawnerRequest;
use super::{EndedAttempt, Supervisor, gpu_turns, program_error, with_help};
use crate::control::Request;
use crate::discarded::Discarded;
use crate::event::Kind as EventKind;
use crate::lifecycle::{Action, AttemptFacts, EndRequest, Input, TaskNumber};
use crate::logs;
use jobc_container::process::Exit;
use jobc_place::exit_code;
use jobc_place::exit_text;
use jobc_place::state::JobState;
use jobc_place::time::Time;
use jobc_place::verdict::is_consequence;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::process::Process;
use jobc_sys::signals::Signal;

/// How many of the last lines of a failed attempt its verdict looks at.
const MAX_LINES_SEEN: u64 = 40;

/// How long a failure for a lost peer waits for the end of that peer.
const PEER_TIMEOUT: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Sends an event to the lifecycle, and carries out the actions, until there are none left.
    pub(super) fn step(&mut self, input: Input) {
        self.step_with_end(input, None);
    }

    /// The same for the end of an attempt, whose event also says whether it ends the job.
    fn step_with_end(&mut self, input: Input, mut end: Option<(TaskNumber, Value)>) {
        match input {
            Input::Paused => self.prober.pause(),
            Input::Resumed | Input::Suspend => self.prober.resume(),
            _ => {}
        }
        let mut inputs = std::collections::VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let decided_before = self.lifecycle.deciding_task();
            let actions = self.lifecycle.step(self.now(), input);
            if let Some((task, mut detail)) = end.take() {
                if decided_before.is_none() && self.lifecycle.deciding_task() == Some(task) {
                    detail["ends_job"] = json!(true);
                }
                if let Some(verdict) = self.lifecycle.tasks()[task].verdict.clone() {
                    detail["verdict"] = json!(verdict);
                    self.note_verdict(task, &verdict);
                    // Before the next attempt takes its place.
                    self.journal.task_mut(task).verdict = Some(verdict);
                }
                self.journal.task_event(task, EventKind::Ended, detail);
            }
            // All of a gang are let go before the first is waited for.
            for action in &actions {
                if let Action::Start(task) = action
                    && let Some(attempt) = self.attempts.get_mut(task)
                {
                    attempt.process.release();
                }
            }
            for action in actions {
                inputs.extend(self.carry_out(action));
            }
            self.journal.record_mut().state = self.lifecycle.state();
        }
    }

    /// Carries an action out; returns what came of it at once.
    fn carry_out(&mut self, action: Action) -> Option<Input> {
        match action {
            Action::Create { task, attempt, memory_bytes } => {
                self.journal.begin_attempt(task, attempt);
                if let Some(bytes) = memory_bytes {
                    self.journal.task_mut(task).limits.insert("memory_bytes".to_owned(), bytes);
                }
                let id = self.lifecycle.tasks()[task].id.clone();
                self.spawner.submit(SpawnerRequest::Create { task, id, attempt, memory_bytes });
                None
            }
            Action::Start(task) => self.handle_start(task),
            Action::Watch(task) => self.watch(task),
            Action::Signal(task, signal) => {
                if let Some(attempt) = self.attempts.get_mut(&task)
                    && let Err(error) = attempt.process.end(signal)
                {
                    self.journal.note(format!("{}: {error}", self.lifecycle.tasks()[task].id));
                }
                None
            }
            Action::Retried { scope, task, attempt, backoff, why } => {
                if self.run.is_some() {
                    eprintln!("jobc: {}: {why}; attempt {attempt} comes", self.lifecycle.tasks()[task].id);
                }
                let detail = json!({
                    "scope": scope, "attempt": attempt, "backoff_ms": millis(backoff), "why": why,
                });
                self.journal.task_event(task, EventKind::Retried, detail);
                None
            }
            Action::Stopping { why } => {
                let mut detail = json!({ "why": why });
                if let Some(task) = self.lifecycle.deciding_task() {
                    detail["task"] = json!(self.lifecycle.tasks()[task].id);
                }
                self.journal.job_event(EventKind::Stopping, detail);
                // An attempt that waits for the memory of its GPUs need not.
                self.context.stopped.store(true, Ordering::Release);
                // A frozen process does not handle signals.
                for attempt in self.attempts.values().filter(|_| self.lifecycle.state() == JobState::Stopping)
                {
                    let cgroup = attempt.process.cgroup();
                    if cgroup.is_frozen().unwrap_or(false) {
                        let _ = cgroup.thaw();
                    }
                }
                None
            }
            Action::Suspended => {
                self.journal.job_event(EventKind::Suspended, json!({}));
                self.give_back();
                None
            }
            Action::End(state, end) => {
                self.end = Some((state, end));
                None
            }
        }
    }

    /// Data, roots and network are ready.
    pub(super) fn start_tasks(&mut self, prepared: PreparedHost) {
        self.prepared = Some(prepared);
        self.step(Input::Prepared);
        self.enter_turns();
    }

    pub(super) fn handle_preparation(&mut self, news: PreparationEvent) {
        match news {
            PreparationEvent::Event(kind, detail) => {
                if kind == EventKind::Queued {
                    self.journal.record_mut().state = JobState::Queued;
                }
                self.journal.job_event(kind, detail);
            }
            PreparationEvent::Note(text) => self.journal.note(text),
            PreparationEvent::Claimed(claim) => {
                let record = self.journal.record_mut();
                record.claim = claim;
                record.state = JobState::Preparing;
                self.sampler.prepare();
            }
            PreparationEvent::Addresses(addresses) => {
                for (known, address) in self.journal.record_mut().tasks.iter_mut().zip(addresses) {
                    known.address = address.map(|address| address.to_string());
                }
            }
        }
    }

    /// An attempt is created and waits to be started.
    pub(super) fn handle_created(&mut self, task: TaskNumber, attempt: u32, held: PendingTask) {
        for text in &held.notes {
            self.journal.note(text.clone());
        }
        if self.turns.is_some() && held.process.cgroup().is_none() {
            return self.not_started(task, &gpu_turns::cannot_freeze());
        }
        let (mounts, unenforced, node) = (held.mounts, held.unenforced.clone(), held.node.clone());
        let taken = match Attempt::new(task, attempt + held.earlier, held, &self.poll) {
            Ok(taken) => taken,
            Err(error) => return self.not_started(task, &error),
        };
        let (pid, name) = (taken.process.pid(), taken.process.container().map(str::to_owned));
        self.attempts.insert(task, taken);
        let id = &self.lifecycle.tasks()[task].id;
        let slots = self.context.gpus().map(|gpus| gpus.slots_of(id)).unwrap_or_default();
        let gpus = slots.into_iter().map(|slot| slot.name).collect();
        let known = self.journal.task_mut(task);
        known.container.clone_from(&name);
        known.process = name.is_some().then(|| Process::of_child(pid)).flatten();
        known.node.clone_from(&node);
        known.gpus = gpus;
        known.unenforced = unenforced;
        let detail = match node {
            Some(node) => json!({ "node": node }),
            None => json!({ "container": name, "pid": pid }),
        };
        self.journal.task_event(task, EventKind::Created, detail);
        if let Some(mounts) = mounts {
            self.journal.task_event(task, EventKind::Mounted, json!({ "mounts": mounts }));
        }
        self.step(Input::Created(task));
    }

    /// A task was let go: its program runs, or could not be executed.
    fn handle_start(&mut self, task: TaskNumber) -> Option<Input> {
        self.count_time();
        let attempt = self.attempts.get_mut(&task)?;
        match attempt.process.wait_started() {
            Ok(()) => {
                let (pid, number) = (attempt.process.pid(), attempt.number);
                let id = &self.lifecycle.tasks()[task].id;
                let slots = self.context.gpus().map(|gpus| gpus.slots_of(id)).unwrap_or_default();
                if attempt.process.container().is_some() {
                    self.sampler.add_attempt(id, number, attempt.process.cgroup().record(), pid, slots);
                }
                if let Some(watch) = &mut self.rendezvous {
                    watch.begin(self.lifecycle.attempt());
                }
                self.watch_progress(task);
                let now = Time::now();
                self.journal.task_mut(task).started = Some(now);
                self.journal.record_mut().started.get_or_insert(now);
                // An agent reports the process on its node.
                if self.run.is_none() {
                    self.journal.task_event(task, EventKind::Started, json!({ "pid": pid }));
                }
                Some(Input::Started(task))
            }
            Err(error) => {
                // `started` has recorded its end; its container is removed as after any end.
                self.drain_output(task);
                let attempt = self.attempts.remove(&task)?;
                let container = attempt.into_container(&self.poll);
                let id = self.lifecycle.tasks()[task].id.clone();
                self.spawner.submit(SpawnerRequest::Remove { task, id, container, layers: None });
                let error = program_error::not_executed(error);
                self.failing.insert(task, (code_of(&error), with_help(&error)));
                None
            }
        }
    }

    /// A container could not be made.
    pub(super) fn not_started(&mut self, task: TaskNumber, error: &Error) {
        let (code, why) = (code_of(error), with_help(error));
        self.release_gpus(task);
        self.note_not_started(task, code, &why);
        let known = self.journal.task_mut(task);
        known.ended = Some(Time::now());
        known.exit_code = Some(code);
        known.reason = Some(why.clone());
        let detail = json!({ "exit_code": code, "explanation": why });
        self.step_with_end(Input::NotStarted { task, code, why }, Some((task, detail)));
    }

    /// A task's first process has ended.
    pub(super) fn handle_exit(&mut self, task: TaskNumber) {
        self.drain_output(task);
        self.prober.unwatch(task);
        self.stalls.end(task);
        self.count_time();
        let Some(mut attempt) = self.attempts.remove(&task) else { return };
        let layers = attempt.process.take_layers();
        let role = self.lifecycle.tasks()[task].role;
        let planned = self.context.plan.roles[role].resources.memory_bytes;
        let limit = self.journal.record.tasks[task].limits.get("memory_bytes").copied().or(planned);
        let groups = attempt.process.cgroup();
        self.sampler.ask_at_end(&self.lifecycle.tasks()[task].id);
        self.note_gpu_faults();
        let own_note = attempt.process.end_note();
        let id = &self.lifecycle.tasks()[task].id;
        let mut kills = 0;
        if let Some(sample) = self.sampler.remove_attempt(id, attempt.process.ended_usage()) {
            kills = sample.usage.oom_kills.unwrap_or(0);
            self.journal.task_mut(task).energy = sample.energy;
            self.journal.task_event(task, EventKind::Sampled, json!(sample));
        }
        self.count_energy(task);
        match attempt.reap(&self.poll) {
            Ok((exit, container)) => {
                let note = exit_note(&groups, exit, limit).or(own_note);
                if exit == Exit::Code(0) {
                    self.note_oom_kills(task, kills);
                } else {
                    self.note_missing_members(task);
                }
                self.ends += 1;
                let (place, seen) = (self.ends, AttemptFacts::default());
                let ended = EndedAttempt { exit, note, place, is_removed: false, seen, held_until: None };
                self.ending.insert(task, ended);
                let id = self.lifecycle.tasks()[task].id.clone();
                self.spawner.submit(SpawnerRequest::Remove { task, id, container, layers });
            }
            Err(error) => self.not_started(task, &error),
        }
    }

    /// The kernel has killed processes of a task for lack of memory, and the task goes on or has succeeded.
    pub(super) fn note_oom_kills(&mut self, task: TaskNumber, kills: u64) {
        if kills > self.journal.record.tasks[task].oom_kills {
            self.journal.task_mut(task).oom_kills = kills;
            self.journal.task_event(task, EventKind::OomKilled, json!({ "kills": kills }));
        }
    }

    /// The resources of an ended attempt are removed: now it has ended for the lifecycle, too.
    pub(super) fn handle_removed(
        &mut self,
        task: TaskNumber,
        left: &[String],
        numbers: Vec<FileNumber>,
        discarded: &Discarded,
    ) {
        if !discarded.directories.is_empty() {
            self.journal.task_event(task, EventKind::Discarded, json!(discarded));
        }
        for text in left {
            self.journal.note(format!("{}: {text}", self.lifecycle.tasks()[task].id));
        }
        self.release_gpus(task);
        if let Some((code, why)) = self.failing.remove(&task) {
            self.not_started(task, &Error::new(kind_of(code), why));
        } else if self.ending.contains_key(&task) {
            let has_succeeded = !self.ending[&task].has_failed();
            let seen = if has_succeeded { AttemptFacts::default() } else { self.seen(task) };
            if let Some(ended) = self.ending.get_mut(&task) {
                ended.is_removed = true;
                let is_consequence = is_consequence(&seen.lines, ended.exit.code());
                ended.held_until = is_consequence.then(|| Instant::now() + PEER_TIMEOUT);
                ended.seen = seen;
            }
            let attempt = self.lifecycle.tasks()[task].attempt;
            self.note_numbers(task, attempt, numbers, has_succeeded);
            self.report_ended();
        }
    }

    /// Reports the attempts that have ended to the lifecycle, of failures the cause before its consequences.
    ///
    /// A failure waits for those before it, whose containers may take longer to remove. One of which the last lines say
    /// that a peer was gone waits a moment for that peer: Python closes its connections before it ends.
    pub(super) fn report_ended(&mut self) {
        let now = Instant::now();
        loop {
            let key = |ended: &EndedAttempt| (ended.held_until.is_some(), ended.place);
            let failed = self.ending.values().filter(|ended| ended.has_failed());
            let first = failed.map(key).min();
            let is_alone = self.attempts.is_empty();
            let can_go = |ended: &EndedAttempt| {
                let is_due = is_alone || ended.held_until.is_none_or(|until| until <= now);
                ended.is_removed && (!ended.has_failed() || is_due && Some(key(ended)) == first)
            };
            let next = self.ending.iter().find(|(_, ended)| can_go(ended)).map(|(&task, _)| task);
            let Some((task, ended)) = next.and_then(|task| self.ending.remove_entry(&task)) else { return };
            self.ended(task, ended.exit, ended.note, ended.seen);
        }
    }

    /// When the next report that waits for that of a peer is due.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let failed = self.ending.values().filter(|ended| ended.has_failed());
        let first = failed.min_by_key(|ended| (ended.held_until.is_some(), ended.place))?;
        first.held_until.filter(|_| first.is_removed)
    }

    /// What was seen of a task's last attempt, for the verdict on it.
    fn seen(&self, task: TaskNumber) -> AttemptFacts {
        let known = &self.journal.record.tasks[task];
        let directory = self.directory.logs(&known.task);
        // Lines that cannot be read are none: the verdict then rests on the rest.
        let lines = logs::last_lines(&directory, known.attempt, MAX_LINES_SEEN).unwrap_or_default();
        let fault = self.node_watch.of_attempt(task, known.attempt);
        AttemptFacts { oom_kills: known.oom_kills, fault, lines }
    }

    /// A task's attempt is gone: another attempt may use its GPUs.
    fn release_gpus(&self, task: TaskNumber) {
        if let Some(gpus) = self.context.gpus() {
            gpus.release(&self.lifecycle.tasks()[task].id);
        }
    }

    fn ended(&mut self, task: TaskNumber, exit: Exit, note: Option<String>, seen: AttemptFacts) {
        let signal = exit.signal().map(exit_text::signal_name);
        self.note_ended(task, exit.code());
        let known = self.journal.task_mut(task);
        known.ended = Some(Time::now());
        known.process = None;
        known.exit_code = Some(exit.code());
        known.signal.clone_from(&signal);
        known.reason.clone_from(&note);
        let mut detail = json!({ "exit_code": exit.code(), "explanation": note });
        if let Some(signal) = signal {
            detail["signal"] = json!(signal);
        }
        match self.lifecycle.end_request(task) {
            Some(EndRequest::Failure(why)) => {
                let reasons = std::iter::once(why).chain(note.as_deref());
                detail["explanation"] = json!(reasons.collect::<Vec<_>>().join(", "));
            }
            Some(EndRequest::Stop) => detail["stopped"] = json!(true),
            None => {}
        }
        self.step_with_end(Input::Ended { task, exit, note, seen }, Some((task, detail)));
        if let Some((server, client)) = self.lifecycle.left_over() {
            let text = format!(
                "only `{server}` still runs, which `{client}` needed; to end the job with `{client}`, write `completion: {{min_succeeded: all}}` on that role"
            );
            self.journal.note(text);
        }
    }

    /// Handles a command's request.
    pub(super) fn carry_out_request(&mut self, request: Request) -> Result<()> {
        match request {
            Request::Attend {} | Request::Leave {} => {}
            Request::Stop { interrupt: true, .. } => {
                self.step(Input::Interrupt { why: "stopped".to_owned() });
            }
            Request::Stop { grace_seconds, interrupt: false } => {
                let grace = grace_seconds.map(Duration::from_secs);
                self.step(Input::Stop { grace, why: "stopped".to_owned() });
            }
            Request::Kill { signal, tasks } => return self.kill(signal, &tasks),
            Request::Suspend {} => return self.suspend(),
            Request::Resume {} if self.lifecycle.state() == JobState::Suspended => self.resume_suspended(),
            Request::Pause {} => return self.freeze(true),
            Request::Resume {} => return self.freeze(false),
        }
        Ok(())
    }

    fn kill(&mut self, signal: i32, tasks: &[jobc_sys::id::TaskId]) -> Result<()> {
        let signal = Signal::by_number(signal)
            .ok_or_else(|| Error::new(Kind::State, format!("unknown signal {signal}")))?;
        if tasks.is_empty() && signal == Signal::KILL {
            self.step(Input::Kill { why: "killed".to_owned() });
            return Ok(());
        }
        let known = self.lifecycle.tasks();
        if let Some(strange) = tasks.iter().find(|id| !known.iter().any(|task| task.id == **id)) {
            return Err(Error::new(Kind::State, format!("the job has no task `{strange}`"))
                .help(format!("`jobc ps {}` lists its tasks", self.directory.id)));
        }
        let mut sent = 0;
        for (task, attempt) in &mut self.attempts {
            if tasks.is_empty() || tasks.contains(&known[*task].id) {
                attempt.process.signal(signal)?;
                sent += 1;
            }
        }
        if sent == 0 {
            return Err(Error::new(Kind::State, "none of these tasks is running"));
        }
        Ok(())
    }

    fn freeze(&mut self, frozen: bool) -> Result<()> {
        if self.turns.is_some() && self.lifecycle.state() == JobState::Paused {
            return self.hold_between_turns(frozen);
        }
        let state = self.lifecycle.state();
        let (wanted, word) =
            if frozen { (JobState::Running, "running") } else { (JobState::Paused, "paused") };
        if state != wanted {
            let message = format!("job `{}` is {}, not {word}", self.directory.id, state.as_str());
            return Err(Error::new(Kind::State, message));
        }
        self.set_frozen(frozen)?;
        if let Some(turns) = &mut self.turns {
            turns.leave();
        }
        self.journal.job_event(if frozen { EventKind::Paused } else { EventKind::Resumed }, json!({}));
        self.step(if frozen { Input::Paused } else { Input::Resumed });
        Ok(())
    }

    /// Freezes every running task, or thaws them: all or none.
    pub(super) fn set_frozen(&self, frozen: bool) -> Result<()> {
        let mut done: Vec<TaskNumber> = Vec::new();
        for (&task, attempt) in &self.attempts {
            let cgroup = attempt.process.cgroup();
            let result = match () {
                () if cgroup.is_none() => Err(Error::new(
                    Kind::Unenforceable,
                    format!("task `{}` has no cgroup that can be frozen", self.lifecycle.tasks()[task].id),
                )
                .help("`jobc doctor` shows how to get cgroups as an unprivileged user")),
                () if frozen => cgroup.freeze(),
                () => cgroup.thaw(),
            };
            if let Err(error) = result {
                for task in done {
                    let cgroup = self.attempts[&task].process.cgroup();
                    let _ = if frozen { cgroup.thaw() } else { cgroup.freeze() };
                }
                return Err(error);
            }
            done.push(task);
        }
        Ok(())
    }
}

fn kind_of(code: u8) -> Kind {
    match code {
        exit_code::NOT_FOUND => Kind::ProgramNotFound,
        exit_code::NOT_EXECUTABLE => Kind::NotExecutable,
        _ => Kind::System,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
