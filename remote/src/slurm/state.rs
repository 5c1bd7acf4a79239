//! The state of a run from those of its groups.

use std::collections::BTreeMap;

use super::group::{GroupEnd, GroupState};
use super::queue::QueueRow;
use super::record::{GroupRecord, RunRecord};
use super::snapshot::{GroupChange, RunFiles};
use super::{group, tasks, time, why};
use crate::place::{JobState, JobSummary, TaskCounts, TaskState, TaskStatus};

/// A run with its known state.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) record: RunRecord,
    pub(crate) files: RunFiles,
    /// The rows of its Slurm jobs, by group.
    pub(crate) rows: BTreeMap<String, QueueRow>,
    /// The states of the groups, in the order of the record.
    pub(crate) states: Vec<GroupState>,
    /// Whether the files of its tasks were read.
    with_tasks: bool,
}

impl Run {
    /// A run from its files and the queue; none if its record is not there.
    pub(crate) fn of(
        name: &str,
        files: RunFiles,
        queue: &BTreeMap<String, QueueRow>,
        with_tasks: bool,
    ) -> Option<Self> {
        let rows = files
            .jobs
            .iter()
            .filter_map(|(group, id)| Some((group.clone(), queue.get(id)?)))
            .filter(|(_, row)| row.is_of(name))
            .map(|(group, row)| (group, row.clone()))
            .collect();
        Self::with_rows(name, files, rows, with_tasks)
    }

    /// Whether Slurm still runs one of its Slurm jobs, or cleans up after it.
    pub(crate) fn is_active(&self) -> bool {
        self.rows.values().any(|row| group::is_active(&row.state))
    }

    /// Takes files that were read later, without asking Slurm again. They are newer than Slurm's state.
    pub(crate) fn update(&mut self, files: RunFiles) {
        let mut rows = self.rows.clone();
        for (group, events) in &files.events {
            let before = self.files.events.get(group).map_or(0, Vec::len);
            let Some(last) = events.last().filter(|_| events.len() > before) else { continue };
            let (state, reason) = match last.what {
                GroupChange::Started { .. } | GroupChange::Limit { .. } => ("RUNNING", ""),
                GroupChange::Requeued { .. } => ("PENDING", "BeginTime"),
                GroupChange::Ended { .. } | GroupChange::Verdict { .. } => ("COMPLETING", ""),
            };
            let row = rows.entry(group.clone()).or_default();
            state.clone_into(&mut row.state);
            reason.clone_into(&mut row.reason);
        }
        if let Some(run) = Self::with_rows(&self.name, files, rows, self.with_tasks) {
            *self = run;
        }
    }

    fn with_rows(
        name: &str,
        files: RunFiles,
        rows: BTreeMap<String, QueueRow>,
        with_tasks: bool,
    ) -> Option<Self> {
        let record = files.record.clone()?;
        let mut files = files;
        for group in record.groups.iter().filter(|group| group.direct) {
            let Some(row) = rows.get(&group.name) else { continue };
            let events = files.events.entry(group.name.clone()).or_default();
            events.extend(group::started(events, row));
        }
        let is_stopped = files.stopped.is_some();
        let mut states: Vec<GroupState> = Vec::with_capacity(record.groups.len());
        for group in &record.groups {
            let events = files.events.get(&group.name).map(Vec::as_slice).unwrap_or_default();
            let row = rows.get(&group.name);
            let state = match group::state(events, row, is_stopped) {
                // Slurm calls what ends after SIGTERM with exit code 0 completed.
                GroupState::Ended(GroupEnd::Succeeded)
                    if group.direct && files.stopped.is_some_and(|at| at <= group::ended(events, row)) =>
                {
                    GroupState::Ended(GroupEnd::Stopped)
                }
                GroupState::Unknown if !files.jobs.contains_key(&group.name) => GroupState::Held,
                state => state,
            };
            let index_of = |name: &String| record.groups.iter().position(|other| other.name == *name);
            let failed = |name: &String| {
                let state = index_of(name).and_then(|index| states.get(index));
                matches!(state, Some(GroupState::Ended(end)) if *end != GroupEnd::Succeeded)
            };
            // Slurm cancels it in a moment.
            let is_hopeless = matches!(state, GroupState::Pending | GroupState::Held | GroupState::Unknown)
                && group.after.iter().any(failed);
            states.push(if is_hopeless { GroupState::Ended(GroupEnd::NeverStarted) } else { state });
        }
        Some(Self { name: name.to_owned(), record, files, rows, states, with_tasks })
    }

    /// The groups with their states.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&GroupRecord, &GroupState)> {
        self.record.groups.iter().zip(&self.states)
    }

    /// The groups whose state is in neither the scripts' files nor the queue, with their ids.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.groups().filter_map(|(group, state)| {
            let id = self.files.jobs.get(&group.name)?;
            let row = self.rows.get(&group.name);
            let events = self.files.events.get(&group.name).map(Vec::as_slice).unwrap_or_default();
            let is_settled = matches!(
                events.last().map(|event| &event.what),
                Some(GroupChange::Ended { .. } | GroupChange::Verdict { .. })
            );
            // The queue has its end only for a while.
            let is_ending = row.is_some_and(|row| group::is_final(&row.state));
            let is_open = *state == GroupState::Unknown || is_ending && !is_settled;
            is_open.then_some((group.name.as_str(), id.as_str()))
        })
    }

    /// The highest number of its Slurm jobs, which tells runs of one second apart: Slurm counts.
    pub(crate) fn job_number(&self) -> Option<u64> {
        let number = |id: &String| id.split('_').next()?.parse().ok();
        self.files.jobs.values().filter_map(number).max()
    }

    /// Whether all of its Slurm jobs exist and may start. A single one may start as soon as it exists, except the task
    /// of an array, `12_3`.
    fn is_complete(&self) -> bool {
        let is_single = || self.record.groups.len() == 1 && !self.files.jobs.is_empty();
        self.files.is_submitted || is_single() && self.files.jobs.values().all(|id| !id.contains('_'))
    }

    /// When Slurm expects its waiting Slurm jobs to start (`squeue --start`): the last of them, in seconds since 1970.
    pub(crate) fn expected_start(&self, now: u64) -> Option<u64> {
        let pending = self.groups().filter(|(_, state)| matches!(state, GroupState::Pending));
        let rows = pending.filter_map(|(group, _)| self.rows.get(&group.name));
        // The begin time of a job is a reason, and no forecast.
        let forecasts = rows.filter(|row| row.reason != "BeginTime").filter_map(|row| row.started);
        forecasts.filter(|at| *at > now).max()
    }

    /// The state of the whole run.
    pub(crate) fn state(&self) -> JobState {
        let any = |wanted: &dyn Fn(&GroupState) -> bool| self.states.iter().any(wanted);
        if any(&|state| matches!(state, GroupState::Running)) {
            return JobState::Running;
        }
        if any(&|state| matches!(state, GroupState::Paused)) {
            return JobState::Paused;
        }
        if any(&|state| matches!(state, GroupState::Pending | GroupState::Unknown)) {
            return JobState::Pending;
        }
        if any(&|state| matches!(state, GroupState::Held)) {
            return JobState::Suspended;
        }
        match self.end() {
            None => JobState::Succeeded,
            Some(_) if self.files.stopped.is_some() => JobState::Stopped,
            Some(GroupEnd::TimedOut) => JobState::TimedOut,
            // Its user has done nothing wrong.
            Some(GroupEnd::Failed { word: Some(word), .. }) if word.eq_ignore_ascii_case("PREEMPTED") => {
                JobState::Stopped
            }
            Some(GroupEnd::Failed { .. }) => JobState::Failed,
            Some(_) => JobState::Stopped,
        }
    }

    /// The end that decides: that of the first group with a failure, or else of the first that did not succeed.
    fn end(&self) -> Option<&GroupEnd> {
        let ends = || {
            self.states.iter().filter_map(|state| match state {
                GroupState::Ended(end) if *end != GroupEnd::Succeeded => Some(end),
                _ => None,
            })
        };
        let is_failure = |end: &&GroupEnd| matches!(end, GroupEnd::Failed { .. } | GroupEnd::TimedOut);
        ends().find(is_failure).or_else(|| ends().next())
    }

    /// The tasks, if their files were read.
    pub(crate) fn tasks(&self) -> Vec<TaskStatus> {
        tasks::statuses(&self.files, &self.rows, &self.states)
    }

    /// The run in a list.
    pub(crate) fn summary(&self) -> JobSummary {
        let state = self.state();
        let (reason, message) = self.explanation(state);
        let events = || self.files.events.values().flatten();
        let started = events().filter(|event| matches!(event.what, GroupChange::Started { .. }));
        let started = started.map(|event| event.time).min();
        let of_rows = || self.rows.values().filter_map(|row| row.ended).max();
        let ended = events().map(|event| event.time).max().or_else(of_rows).or(self.files.stopped);
        JobSummary {
            kind: self.kind(),
            reason,
            message,
            tasks: self.counts(state),
            user: Some(self.record.user.clone()),
            submitted: Some(time::moment(self.record.submitted)),
            started: started.map(time::moment),
            ended: ended.filter(|_| state.is_final()).map(time::moment),
            is_complete: self.is_complete(),
            plan: Some(self.record.plan.clone()),
            outline: self.record.outline.clone(),
            ..JobSummary::new(&self.name, &self.record.job, state)
        }
    }

    /// `Slurm job 12, 13`.
    fn kind(&self) -> String {
        let ids = self.record.groups.iter().filter_map(|group| self.files.jobs.get(&group.name));
        let ids: Vec<&str> = ids.map(String::as_str).collect();
        format!("Slurm job {}", ids.join(", ")).trim_end().to_owned()
    }

    fn counts(&self, state: JobState) -> TaskCounts {
        if self.with_tasks {
            return tasks::counts(&self.tasks());
        }
        let wanted = self.record.task_count();
        let of = |wanted: &dyn Fn(&GroupState) -> bool| {
            let groups = self.groups().filter(|(_, state)| wanted(state));
            groups.map(|(group, _)| group.tasks().count() as u64).sum()
        };
        TaskCounts {
            wanted,
            active: of(&|state| matches!(state, GroupState::Running | GroupState::Paused)),
            succeeded: of(&|state| matches!(state, GroupState::Ended(GroupEnd::Succeeded))),
            failed: u64::from(state == JobState::Failed),
        }
    }

    /// Slurm's word for the state, and a sentence.
    fn explanation(&self, state: JobState) -> (Option<String>, Option<String>) {
        match state {
            JobState::Pending | JobState::Suspended => {
                let waiting = self.groups().find(|(_, state)| {
                    matches!(state, GroupState::Pending | GroupState::Held | GroupState::Unknown)
                });
                let row = waiting.and_then(|(group, _)| self.rows.get(&group.name));
                let word = row.and_then(|row| row.reason.split([',', ' ']).next()).unwrap_or_default();
                (Some(word.to_owned()).filter(|word| !word.is_empty() && word != "None"), None)
            }
            JobState::TimedOut => {
                let limit = self.files.events.values().find_map(|events| group::limit(events));
                let why = limit.map_or_else(|| why::end("TIMEOUT"), str::to_owned);
                (Some("TIMEOUT".to_owned()), Some(why))
            }
            JobState::Failed | JobState::Stopped => {
                let end = self.end();
                let (code, word) = match end {
                    Some(GroupEnd::Failed { code, word }) => (*code, word.as_deref()),
                    _ => return (None, None),
                };
                let is_memory = self.files.errors.values().flatten().any(|error| error.is_memory);
                let word = word.or_else(|| is_memory.then_some("OUT_OF_MEMORY"));
                if state == JobState::Stopped && word.is_none() {
                    return (None, None);
                }
                let message = match word {
                    Some(word) => Some(why::end(word)),
                    None => self
                        .failed_task()
                        .or_else(|| code.map(|code| format!("it ended with exit code {code}"))),
                };
                (word.map(str::to_owned), message)
            }
            _ => (None, None),
        }
    }

    /// The first task that failed.
    fn failed_task(&self) -> Option<String> {
        let tasks = self.tasks();
        let failed = tasks.iter().filter(|task| task.state == TaskState::Failed && task.exit_code.is_some());
        // Those that were stopped because of it ended later, or at the same time by a signal.
        let first = failed.min_by_key(|task| (task.ended, task.exit_code.is_some_and(|code| code > 128)))?;
        Some(match first.exit_code.unwrap_or_default() {
            124 => format!("task `{}` exceeded its time limit", first.task),
            125 => format!(
                "task `{}` ended with exit code 125: its output says what it could not start with",
                first.task
            ),
            code => format!("task `{}` ended with exit code {code}", first.task),
        })
    }

    /// Why it waits or ended, one sentence each.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let mut found = Vec::new();
        let summary = self.summary();
        if !summary.is_complete {
            found.push("its submission is not complete; submit the same job again to complete it".to_owned());
        }
        let group = self.groups().find(|(_, state)| {
            matches!(state, GroupState::Ended(GroupEnd::Failed { .. } | GroupEnd::TimedOut))
        });
        found.extend(summary.message.filter(|_| summary.state.is_final()).map(|text| {
            match (group, summary.reason.as_deref()) {
                (Some((group, _)), Some(word)) => why::show(&why::ended(word), group),
                _ => text,
            }
        }));
        let several = self.record.groups.len() > 1;
        for (group, state) in self.groups() {
            let Some(row) = self.rows.get(&group.name) else { continue };
            if !matches!(state, GroupState::Pending)
                && (!matches!(state, GroupState::Held) || !summary.is_complete)
            {
                continue;
            }
            let events = self.files.events.get(&group.name).map(Vec::as_slice).unwrap_or_default();
            let text = why::show(&why::pending(row, !events.is_empty()), group);
            found.push(if several { format!("{}: {text}", group.name) } else { text });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::snapshot::parse;

    const RECORD: &str = r#"x/job.json:{"version":1,"job":"x","plan":"p","user":"u","submitted":100,"grace":30,"groups":[{"name":"prepare","after":[],"roles":[["prepare",1]],"places":{}},{"name":"train","after":["prepare"],"roles":[["train",2]],"places":{"partition":"job.yaml:2:3"}}]}
x/jobs/prepare:7
x/jobs/train:8
"#;

    fn run(lines: &str, rows: &[(&str, &str, &str)]) -> Run {
        let files = parse(&format!("{RECORD}{lines}")).remove("x").unwrap();
        let row = |(id, state, reason): &(&str, &str, &str)| {
            let row = QueueRow {
                state: (*state).to_owned(),
                reason: (*reason).to_owned(),
                name: "x".to_owned(),
                ..QueueRow::default()
            };
            ((*id).to_owned(), row)
        };
        Run::of("x", files, &rows.iter().map(row).collect(), true).unwrap()
    }

    #[test]
    fn several_slurm_jobs_are_one_job() {
        let submitted = "x/submitted:101\n";
        let ended = |code: i32| {
            format!("{submitted}x/events/prepare:110 started 0 7 n0\nx/events/prepare:120 ended {code}\n")
        };
        let pending = [("8", "PENDING", "Dependency")];
        for (lines, rows, state) in [
            (
                String::new(),
                &[("7", "PENDING", "JobHeldUser"), ("8", "PENDING", "Dependency")][..],
                JobState::Pending,
            ),
            (String::new(), &[("7", "PENDING", "JobHeldUser")], JobState::Pending),
            (
                submitted.to_owned(),
                &[("7", "RUNNING", "None"), ("8", "PENDING", "Dependency")],
                JobState::Running,
            ),
            (ended(0), &pending, JobState::Pending),
            (ended(3), &pending, JobState::Failed),
            (ended(3), &[("8", "CANCELLED", "Dependency")], JobState::Failed),
            (ended(143) + "x/stopped:119\n", &[("8", "CANCELLED", "")], JobState::Stopped),
            (
                ended(0) + "x/events/train:130 started 0 8 n1\nx/events/train:140 ended 0\n",
                &[],
                JobState::Succeeded,
            ),
            (ended(0) + "x/events/train:130 started 0 8 n1\n", &[("8", "TIMEOUT", "")], JobState::TimedOut),
            (ended(0) + "x/events/train:130 started 0 8 n1\n", &[("8", "NODE_FAIL", "")], JobState::Failed),
        ] {
            assert_eq!(run(&lines, rows).state(), state, "{lines} {rows:?}");
        }
    }

    #[test]
    fn a_summary_has_what_tables_show() {
        let lines = "x/submitted:101\nx/events/prepare:110 started 0 7 n0\nx/events/prepare:120 ended 3\n\
                     x/tasks/prepare-0:110 started 1 n0 9\nx/tasks/prepare-0:119 ended 1 3\n";
        let summary = run(lines, &[]).summary();
        assert_eq!(summary.kind, "Slurm job 7, 8");
        assert_eq!(summary.message.as_deref(), Some("task `prepare-0` ended with exit code 3"));
        assert_eq!(summary.tasks, TaskCounts { wanted: 3, active: 0, succeeded: 0, failed: 1 });
        assert_eq!(summary.started, Some(time::moment(110)));
        assert_eq!(summary.ended, Some(time::moment(120)));
        let waiting =
            run("x/submitted:101\n", &[("7", "PENDING", "Priority"), ("8", "PENDING", "PartitionDown")]);
        assert_eq!(waiting.summary().reason.as_deref(), Some("Priority"));
        assert_eq!(
            waiting.reasons(),
            ["prepare: other jobs are ahead of it", "train: job.yaml:2:3: its partition is closed"]
        );
    }

    #[test]
    fn the_forecast_is_that_of_the_job_that_starts_last() {
        let mut run =
            run("x/submitted:101\n", &[("7", "PENDING", "Priority"), ("8", "PENDING", "Dependency")]);
        assert_eq!(run.expected_start(100), None);
        run.rows.get_mut("prepare").unwrap().started = Some(500);
        run.rows.get_mut("train").unwrap().started = Some(900);
        assert_eq!((run.expected_start(100), run.expected_start(900)), (Some(900), None));
        run.rows.get_mut("train").unwrap().reason = "BeginTime".to_owned();
        assert_eq!(run.expected_start(100), Some(500));
    }

    #[test]
    fn files_are_newer_than_the_queue() {
        let mut run =
            run("x/submitted:101\n", &[("7", "PENDING", "Priority"), ("8", "PENDING", "Dependency")]);
        let mut lines = format!("{RECORD}x/submitted:101\nx/events/prepare:110 started 0 7 n0\n");
        run.update(parse(&lines).remove("x").unwrap());
        assert_eq!(run.state(), JobState::Running);
        lines += "x/events/prepare:120 ended 3\n";
        run.update(parse(&lines).remove("x").unwrap());
        assert_eq!(run.state(), JobState::Failed);
    }

    #[test]
    fn what_only_the_queue_knows_is_asked_for_while_it_is_there() {
        let started = "x/submitted:101\nx/events/prepare:110 started 0 7 n0\n";
        let unknown =
            |run: &Run| run.unknown().map(|(group, _)| group.to_owned()).collect::<Vec<_>>().join(" ");
        assert_eq!(unknown(&run(started, &[("8", "PENDING", "Dependency")])), "prepare");
        assert_eq!(
            unknown(&run(started, &[("7", "NODE_FAIL", ""), ("8", "PENDING", "Dependency")])),
            "prepare"
        );
        assert_eq!(unknown(&run(started, &[("7", "RUNNING", ""), ("8", "PENDING", "Dependency")])), "");
        let verdict = format!("{started}x/events/prepare:120 verdict NODE_FAIL 0:0\n");
        assert_eq!(unknown(&run(&verdict, &[("7", "NODE_FAIL", ""), ("8", "CANCELLED", "")])), "train");
    }
}
