//! Tasks that make no progress: what is seen of them is recorded, and then `stall` of their role is followed.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::time::Duration;

use jobc_schema::duration::Seconds;
use jobc_schema::stall::{StallAction, StallSign};
use serde_json::json;

use super::Supervisor;
use super::spawner::{SpawnerRequest, container_name};
use crate::event::Kind as EventKind;
use crate::lifecycle::{Input, TaskNumber};
use crate::stall::examine::{Cause, Examination, ExamineRequest, ExaminedTask, Findings, bytes_of};
use crate::stall::{Counters, Finding, Watch};
use jobc_place::state::JobState;
use jobc_place::task::TaskState;

/// Between two looks, this is longer than any interval of samples.
const MAX_GAP: Duration = Duration::from_secs(90);

/// What is known of the progress of a job's tasks.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    watch: Watch,
    /// Whether tasks are being looked at.
    is_examining: bool,
    /// How many reports the record has.
    reports: u32,
    /// When it was looked last.
    looked: Option<Duration>,
}

impl Stalls {
    /// An attempt is over.
    pub(super) fn end(&mut self, task: TaskNumber) {
        self.watch.end(task);
    }
}

impl Supervisor {
    /// Begins to watch whether an attempt makes progress, if its role says so.
    pub(super) fn watch_progress(&mut self, task: TaskNumber) {
        let role = self.lifecycle.tasks()[task].role;
        if let Some(rules) = self.context.plan.roles[role].stall.as_ref().filter(|_| self.run.is_none()) {
            self.stalls.watch.begin(task, rules, self.started.elapsed());
        }
    }

    /// A task wrote something.
    pub(super) fn note_output(&mut self, task: TaskNumber) {
        self.stalls.watch.wrote(task, self.started.elapsed());
    }

    /// Looks whether tasks make progress, after each sample of their use.
    pub(super) fn look_at_progress(&mut self) {
        let latest = self.sampler.take_latest();
        if self.stalls.watch.is_empty() || latest.is_empty() {
            return;
        }
        let now = self.now();
        if self.lifecycle.state() != JobState::Running {
            return self.stalls.watch.restart(now);
        }
        // A host that slept, or was too busy to look, saw nothing.
        let gap = self.stalls.looked.replace(now).map(|looked| now.saturating_sub(looked));
        if gap.is_some_and(|gap| gap > MAX_GAP) {
            self.stalls.watch.restart(now);
        }
        for (id, usage) in latest {
            let Some(task) = self.lifecycle.tasks().iter().position(|task| task.id == id) else { continue };
            let wants = self.stalls.watch.wants_bytes(task, now);
            let bytes = wants.then(|| bytes_of(&self.processes_of(task))).flatten();
            let gpu = self.sampler.gpu_activity(&id);
            self.stalls.watch.counted(task, Counters::of(&usage, bytes, gpu), now);
        }
        if self.stalls.is_examining {
            return;
        }
        let (mut stalled, mut asking) = (vec![], vec![]);
        for finding in self.stalls.watch.check(now) {
            match finding {
                Finding::Stalled(task, signs) => stalled.push((task, signs)),
                Finding::AskNccl(task) => asking.push(task),
            }
        }
        if !stalled.is_empty() || !asking.is_empty() {
            self.examine(stalled, asking);
        }
    }

    /// The processes of a task, the first one first.
    fn processes_of(&self, task: TaskNumber) -> Vec<u32> {
        let Some(attempt) = self.attempts.get(&task) else { return vec![] };
        let first = attempt.process.pid();
        let others = match attempt.process.cgroup().processes() {
            Ok(listed) if !listed.is_empty() => listed,
            _ => jobc_sys::pid_namespace::others(first)
                .map(|others| others.into_iter().map(|other| other.pid).collect())
                .unwrap_or_default(),
        };
        std::iter::once(first).chain(others.into_iter().filter(|pid| *pid != first)).collect()
    }

    /// Has tasks looked at: all that run if some make no progress, so that the one that stopped first is found.
    fn examine(&mut self, stalled: Vec<(TaskNumber, Vec<StallSign>)>, asking: Vec<TaskNumber>) {
        let first = stalled.first().map(|(task, _)| *task).or_else(|| asking.first().copied());
        let nccl = first.and_then(|task| self.attempts.get(&task)).map(|attempt| attempt.process.pid());
        let mut tasks = vec![];
        if !stalled.is_empty() {
            for (&task, attempt) in &self.attempts {
                let id = self.lifecycle.tasks()[task].id.clone();
                let container = container_name(&self.context, &id, attempt.number).ok();
                let processes = self.processes_of(task);
                tasks.push(ExaminedTask { task, id, attempt: attempt.number, processes, container });
            }
        }
        let dumps = self.directory.record.join(format!("stall-{}", self.stalls.reports + 1));
        self.stalls.is_examining = true;
        self.spawner.submit(SpawnerRequest::Examine(ExamineRequest { stalled, asking, tasks, nccl, dumps }));
    }

    /// Tasks were looked at.
    pub(super) fn handle_examined(&mut self, request: &ExamineRequest, seen: &Examination) {
        self.stalls.is_examining = false;
        for task in &request.asking {
            self.stalls.watch.note_nccl(*task, seen.nccl_has_trouble());
        }
        let now = self.now();
        let is_running = |task: TaskNumber| {
            matches!(self.lifecycle.tasks()[task].state, TaskState::Running | TaskState::Ready)
        };
        let stalled: Vec<&(TaskNumber, Vec<StallSign>)> =
            request.stalled.iter().filter(|(task, _)| is_running(*task)).collect();
        if stalled.is_empty() || self.lifecycle.state() != JobState::Running {
            return;
        }
        // Of the tasks that are quiet, the one that does not wait for another stopped first.
        let quiet = |found: &&Findings| {
            let is_stalled = stalled.iter().any(|(task, _)| *task == found.task);
            is_running(found.task) && (is_stalled || self.stalls.watch.is_quiet(found.task, now))
        };
        let order = |found: &&Findings| {
            let silent = self.stalls.watch.silent(found.task, now).unwrap_or_default();
            (found.cause, Reverse(found.cut_off), Reverse(silent))
        };
        let candidates: Vec<&Findings> = seen.tasks.iter().filter(quiet).collect();
        let Some(first) = candidates.iter().copied().min_by_key(order) else { return };
        if self.stalls.watch.is_reported(first.task) {
            // Others were found to wait for it later, as they did something else before.
            for (task, _) in stalled {
                self.stalls.watch.reported(*task);
            }
            return;
        }
        let signs =
            stalled.iter().find(|(task, _)| *task == first.task).map_or(&stalled[0].1, |(_, signs)| signs);
        let others: Vec<TaskNumber> =
            stalled.iter().map(|(task, _)| *task).filter(|task| *task != first.task).collect();
        self.report_stall(first, signs, &others, seen);
    }

    /// Records what was seen, and does what the role says.
    fn report_stall(
        &mut self,
        first: &Findings,
        signs: &[StallSign],
        others: &[TaskNumber],
        seen: &Examination,
    ) {
        let now = self.now();
        let task = first.task;
        let silent = self.stalls.watch.silent(task, now).unwrap_or_default().as_secs();
        let words: Vec<&str> = signs.iter().map(|sign| sign.describe()).collect();
        let mut why = format!("{} for {}", words.join(", "), Seconds(silent.max(1)));
        if first.cause != Cause::WaitsForPeer || others.is_empty() {
            let _ = write!(why, "; {}", first.cause.as_str());
        }
        let ids: Vec<String> =
            others.iter().map(|task| self.lifecycle.tasks()[*task].id.to_string()).collect();
        if !ids.is_empty() {
            let _ =
                write!(why, "; {} {} for it", ids.join(", "), if ids.len() == 1 { "waits" } else { "wait" });
        }
        let file = self.keep_findings(task, &why, seen);
        let role = &self.context.plan.roles[self.lifecycle.tasks()[task].role];
        let action = role.stall.as_ref().map(|stall| stall.action).unwrap_or_default();
        let detail = json!({ "why": why, "signs": signs, "action": action, "too": ids, "file": file });
        self.journal.task_event(task, EventKind::Stalled, detail);
        let id = self.lifecycle.tasks()[task].id.clone();
        let kept = file.map(|file| format!("; what was seen is in {file}")).unwrap_or_default();
        self.journal.note(format!("{id} makes no progress: {why}{kept}"));
        for task in others.iter().copied().chain([task]) {
            self.stalls.watch.reported(task);
        }
        if action != StallAction::Report {
            let is_final = action == StallAction::Fail;
            let why = format!("no progress: {why}");
            self.step(Input::Stalled { task, why, is_final });
        }
    }

    /// Writes what was seen into the record; its path.
    fn keep_findings(&mut self, task: TaskNumber, why: &str, seen: &Examination) -> Option<String> {
        let id = self.lifecycle.tasks()[task].id.clone();
        let mut text = format!("{id} makes no progress: {why}\n\n");
        // The one that stopped first comes first.
        let (own, others): (Vec<&Findings>, Vec<&Findings>) =
            seen.tasks.iter().partition(|found| found.task == task);
        for found in own.into_iter().chain(others) {
            let _ = writeln!(text, "{}", found.text);
        }
        match &seen.nccl {
            Some(Ok(report)) => {
                let _ = writeln!(text, "== NCCL (RAS)\n{report}");
            }
            Some(Err(error)) => {
                let _ = writeln!(text, "== NCCL (RAS)\nnot asked: {error}");
            }
            None => {}
        }
        if !seen.debug_server.is_empty() {
            let _ = writeln!(text, "== PyTorch's debug server\n{}", seen.debug_server);
        }
        if !seen.dumps.is_empty() {
            let _ = writeln!(text, "== PyTorch's flight recorder\n{}", seen.dumps.join("\n"));
        }
        self.stalls.reports += 1;
        let path = self.directory.record.join(format!("stall-{}.txt", self.stalls.reports));
        match crate::directory::replace(&path, text.as_bytes(), jobc_sys::write_atomic::Durability::Rename) {
            Ok(()) => Some(path.display().to_string()),
            Err(error) => {
                self.journal.note(format!("what was seen of {id} is lost: {error}"));
                None
            }
        }
    }
}
