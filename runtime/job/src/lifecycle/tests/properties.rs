//! Any job, any order of events: the invariants.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::lifecycle::task::EndReason;

/// A task's state on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TaskView {
    /// It does not exist.
    Nothing,
    /// Its container is being made.
    Making,
    /// Its container is created.
    Held,
    /// It was let go.
    LetGo,
    /// Its program runs.
    Runs,
}

/// A host that carries out its actions, and checks whether they are allowed.
struct Machine {
    plan: JobPlan,
    job: Lifecycle,
    now: Duration,
    seen: Vec<TaskView>,
    signalled: Vec<Option<EndSignal>>,
    /// The progress of each task's latest attempt: started, ready, succeeded.
    reached: Vec<[bool; 3]>,
    /// The attempt of the job in which a role was first made.
    made: Vec<u32>,
    /// The attempt of the job in which a role's needs were all met at one time.
    met: Vec<u32>,
    /// The first tasks of roles that started together, and all tasks that started with them: also those of a role that
    /// is retried at the same moment.
    gangs: Vec<(BTreeSet<TaskNumber>, BTreeSet<TaskNumber>)>,
    stopping: bool,
    over: bool,
}

impl Machine {
    fn new(plan: JobPlan) -> Self {
        let job = Lifecycle::new(&plan);
        let (tasks, roles) = (job.tasks().len(), plan.roles.len());
        Self {
            plan,
            job,
            now: Duration::ZERO,
            seen: vec![TaskView::Nothing; tasks],
            signalled: vec![None; tasks],
            reached: vec![[false; 3]; tasks],
            made: vec![0; roles],
            met: vec![0; roles],
            gangs: Vec::new(),
            stopping: false,
            over: false,
        }
    }

    fn step(&mut self, input: Input) {
        let before = self.job.attempt();
        let actions = self.job.step(self.now, input);
        if self.job.attempt() != before {
            self.gangs.clear();
        }
        self.look_at_needs();
        let mut gang = BTreeSet::new();
        for action in &actions {
            assert!(!self.over, "nothing comes after the end, but {action:?}");
            match *action {
                Action::Create { task, attempt, .. } => self.create(task, attempt, &mut gang),
                Action::Start(task) => self.start(task, &actions),
                Action::Watch(task) => assert_eq!(self.seen[task], TaskView::Runs, "{task}"),
                Action::Signal(task, signal) => {
                    assert_ne!(self.seen[task], TaskView::Nothing, "nobody can signal {task}");
                    assert_ne!(self.seen[task], TaskView::Making, "nobody can signal {task} yet");
                    let before = self.signalled[task];
                    assert!(signal == EndSignal::Kill || before < Some(signal), "{signal:?} again to {task}");
                    self.signalled[task] = Some(signal);
                }
                Action::Retried { scope, task, attempt, .. } => {
                    let retry = &self.plan.roles[self.job.tasks()[task].role].retry;
                    assert_eq!(scope, retry.scope);
                    assert!(!self.stopping && attempt >= 2);
                    if scope == RetryScope::Job {
                        assert!(attempt <= retry.max + 1);
                    }
                }
                Action::Suspended => {
                    assert!(self.seen.iter().all(|seen| *seen == TaskView::Nothing), "something is left");
                    assert!(self.job.is_suspended());
                }
                Action::Stopping { .. } => {
                    assert!(!std::mem::replace(&mut self.stopping, true), "said twice");
                }
                Action::End(state, ref end) => {
                    assert!(self.seen.iter().all(|seen| *seen == TaskView::Nothing), "something is left");
                    assert!(state.is_final() && state == self.job.state(), "{state:?}");
                    assert_eq!(end.exit_code == 0, state == JobState::Succeeded, "{end:?}");
                    assert!(self.job.tasks().iter().all(|task| task.state.is_final()));
                    self.over = true;
                }
            }
        }
        if gang.len() > 1 && self.plan.gang != GangPlan::None {
            let created = actions.iter().filter_map(|action| match action {
                Action::Create { task, .. } => Some(*task),
                _ => None,
            });
            self.gangs.push((gang, created.collect()));
        }
        self.count();
        if self.over {
            assert_eq!(self.job.next_tick(), None);
        } else if let Some(tick) = self.job.next_tick() {
            assert!(tick >= self.now, "a tick is overdue");
        }
    }

    /// Whether each role's needs are met now, by what this host has seen.
    fn look_at_needs(&mut self) {
        for (number, role) in self.plan.roles.iter().enumerate() {
            let met = role.needs.iter().all(|need| {
                let at = [NeedState::Started, NeedState::Ready, NeedState::Succeeded]
                    .iter()
                    .position(|state| *state == need.state)
                    .expect("a state");
                let tasks = (0..self.seen.len()).filter(|task| self.job.tasks()[*task].id.role == need.role);
                // One that serves and never ran has served well enough.
                let served = |task: TaskNumber| {
                    self.job.progress[task].serves && self.job.tasks()[task].state == TaskState::Succeeded
                };
                let there = tasks.filter(|task| self.reached[*task][at] || at == 2 && served(*task)).count();
                there >= need.min as usize
            });
            if met {
                self.met[number] = self.job.attempt();
            }
        }
    }

    fn create(&mut self, task: TaskNumber, attempt: u32, gang: &mut BTreeSet<TaskNumber>) {
        let known = &self.job.tasks()[task];
        let role = known.role;
        assert!(!self.stopping, "nothing is made once the job is being ended");
        assert_eq!((self.seen[task], known.attempt), (TaskView::Nothing, attempt), "{known:?}");
        assert_eq!(self.met[role], self.job.attempt(), "{known:?} needs something that is not there");
        self.seen[task] = TaskView::Making;
        self.signalled[task] = None;
        self.reached[task] = [false; 3];
        let alive = self.job.tasks().iter().zip(&self.seen);
        let alive = alive.filter(|(task, seen)| task.role == role && **seen != TaskView::Nothing).count();
        assert!(alive <= self.plan.roles[role].parallel.unwrap_or(u32::MAX) as usize, "too many at once");
        // The first of a role, which come in one step, are in one gang with those of other roles.
        if self.made[role] != self.job.attempt() {
            let of_role = |task: &TaskNumber| self.job.tasks()[*task].role == role;
            let first = !gang.iter().any(of_role);
            if first || gang.contains(&(task - 1)) {
                gang.insert(task);
            }
        }
    }

    fn start(&mut self, task: TaskNumber, actions: &[Action]) {
        assert_eq!(self.seen[task], TaskView::Held, "{task} cannot be let go");
        assert_eq!(self.signalled[task], None, "{task} is being removed");
        let gangs = &mut self.gangs;
        if let Some(at) = gangs.iter().position(|(gang, _)| gang.contains(&task)) {
            let (gang, created) = gangs.swap_remove(at);
            let (needed, among) = match self.plan.gang {
                GangPlan::Min(min) => (gang.len().min(min as usize), &created),
                _ => (gang.len(), &gang),
            };
            let held = |task: &&TaskNumber| {
                matches!(self.seen[**task], TaskView::Held | TaskView::LetGo)
                    || self.job.tasks()[**task].state.is_final()
            };
            let held = among.iter().filter(held).count();
            assert!(held >= needed, "{task} is let go before its gang {gang:?} is there: {actions:?}");
        }
        self.seen[task] = TaskView::LetGo;
    }

    /// The counts that are kept are those that can be counted.
    fn count(&mut self) {
        for (number, role) in self.job.roles.iter().enumerate() {
            if self.seen[role.tasks.clone()].iter().any(|seen| *seen != TaskView::Nothing) {
                self.made[number] = self.job.attempt();
            }
            let count =
                |counts: &dyn Fn(TaskNumber) -> bool| role.tasks.clone().filter(|task| counts(*task)).count();
            let state = |task: TaskNumber| self.job.tasks()[task].state;
            let progress = |task: TaskNumber| &self.job.progress[task];
            let counts = role.counts;
            assert_eq!(counts.alive, count(&|task| self.seen[task] != TaskView::Nothing));
            assert_eq!(counts.succeeded, count(&|task| state(task) == TaskState::Succeeded));
            assert_eq!(counts.failed, count(&|task| state(task) == TaskState::Failed));
            assert_eq!(counts.started, count(&|task| progress(task).started));
            assert_eq!(counts.ready, count(&|task| progress(task).ready));
            assert_eq!(
                counts.never_started,
                count(&|task| state(task).is_final() && !progress(task).started)
            );
            assert_eq!(counts.never_ready, count(&|task| state(task).is_final() && !progress(task).ready));
        }
        if matches!(self.job.phase, Phase::Running) {
            assert!(self.job.changed.is_empty(), "nobody has looked at {:?}", self.job.changed);
        }
        let tasks = self.job.tasks();
        assert_eq!(self.job.ended, tasks.iter().filter(|task| task.state.is_final()).count());
        assert_eq!(self.job.alive, self.seen.iter().filter(|seen| **seen != TaskView::Nothing).count());
        let launching = tasks.iter().zip(&self.job.progress);
        let launching =
            launching.filter(|(task, progress)| progress.launches && !task.state.is_final()).count();
        assert_eq!(self.job.launching, launching);
    }

    /// An event that can happen to a task, chosen by the number.
    fn happen(&mut self, task: TaskNumber, choice: u8) {
        let why = || "it cannot".to_owned();
        match (self.seen[task], choice % 8) {
            // Impossible events.
            (TaskView::Nothing, 0) => self.step(Input::Created(task)),
            (TaskView::Nothing, 1) => self.step(Input::Started(task)),
            (TaskView::Nothing, 2) => self.step(Input::Ready(task)),
            (TaskView::Nothing | TaskView::Runs, 3) => self.step(Input::NotReady { task, why: why() }),
            (TaskView::Nothing, 4) => {
                self.step(Input::Ended {
                    task,
                    exit: Exit::Code(0),
                    note: None,
                    seen: AttemptFacts::default(),
                });
            }
            (TaskView::Nothing, _) => {}
            (TaskView::Making | TaskView::LetGo, 0) => {
                self.seen[task] = TaskView::Nothing;
                self.step(Input::NotStarted { task, code: 125 + choice / 8 % 3, why: why() });
            }
            (TaskView::Making, _) => {
                self.seen[task] = TaskView::Held;
                self.step(Input::Created(task));
            }
            (TaskView::LetGo, 1..6) => {
                self.seen[task] = TaskView::Runs;
                self.reached[task][0] = true;
                self.step(Input::Started(task));
            }
            (TaskView::Runs, 1 | 2) if self.plan.roles[self.job.tasks()[task].role].ready.is_some() => {
                self.reached[task][1] |= self.signalled[task].is_none();
                self.step(Input::Ready(task));
            }
            (TaskView::Held, 1..8) if self.signalled[task].is_none() => {}
            _ => {
                let exit = match choice / 8 % 4 {
                    0 => Exit::Code(1),
                    1 => Exit::Signal(9),
                    _ => Exit::Code(0),
                };
                self.end(task, exit);
            }
        }
    }

    fn end(&mut self, task: TaskNumber, exit: Exit) {
        let (seen, progress) = (self.seen[task], self.job.progress[task].clone());
        self.seen[task] = TaskView::Nothing;
        self.reached[task][0] |= seen == TaskView::LetGo;
        let failed = matches!(
            progress.ending,
            Some(EndReason::Failed { .. } | EndReason::Restart | EndReason::JobEnded | EndReason::Suspended)
        );
        let well = exit == Exit::Code(0) && !failed && seen != TaskView::Held
            || progress.ending == Some(EndReason::Served);
        self.reached[task][2] |= well;
        self.step(Input::Ended { task, exit, note: None, seen: AttemptFacts::default() });
    }

    /// Time passes until the job is over, and every program exits itself.
    fn run_out(&mut self) {
        self.step(Input::Resumed);
        for _ in 0..10_000 {
            if self.over {
                break;
            }
            match (0..self.seen.len()).find(|task| {
                // Held tasks wait for others.
                self.seen[*task] != TaskView::Nothing
                    && (self.seen[*task] != TaskView::Held || self.signalled[*task].is_some())
            }) {
                Some(task) if self.seen[task] == TaskView::Runs && self.signalled[task].is_none() => {
                    if self.plan.roles[self.job.tasks()[task].role].ready.is_some()
                        && !self.job.progress[task].ready
                    {
                        self.happen(task, 1);
                    } else {
                        self.end(task, Exit::Code(0));
                    }
                }
                Some(task) if self.signalled[task].is_some() => self.end(task, Exit::Signal(15)),
                Some(task) => self.happen(task, 1),
                None if self.job.is_suspended() => self.step(Input::Readmitted),
                None => {
                    let tick = self.job.next_tick().expect("a job that is not over waits for something");
                    self.now = self.now.max(tick);
                    self.step(Input::Tick);
                }
            }
        }
        assert!(self.over, "the job never ends: {:?}", self.job);
        self.step(Input::Tick);
    }
}

/// A role, given those before it.
fn role(number: usize) -> impl Strategy<Value = Value> {
    let need = (0..number.max(1), 0..3_usize, 1..3_u32);
    let shape = (1..5_u32, prop::option::of(1..4_u32), prop::collection::vec(need, 0..3), any::<bool>());
    let rules = (
        prop::option::of(1..3_u32),
        prop::option::of(1..3_u32),
        (0..3_u32, prop::sample::select(vec!["task", "role", "job"]), 0..3_u64, any::<bool>()),
        prop::option::of(1..20_u64),
        0..3_u64,
        prop::sample::select(vec!["all", "all", "first", "none"]),
    );
    (shape, rules).prop_map(move |((instances, parallel, needs, ready), rules)| {
        let (min_succeeded, min_failed, (max, scope, backoff, codes), timeout, grace, launch) = rules;
        let mut role = json!({"instances": instances, "grace_period_seconds": grace, "launch": launch});
        if let Some(parallel) = parallel {
            role["parallel"] = json!(parallel);
        }
        if ready {
            role["ready"] = json!({});
        }
        if let Some(timeout) = timeout {
            role["timeout_seconds"] = json!(timeout);
        }
        role["completion"] = json!({"min_succeeded": min_succeeded, "min_failed": min_failed});
        let codes = if codes { json!([137, 124]) } else { json!([]) };
        role["retry"] =
            json!({"max": max, "scope": scope, "backoff_seconds": backoff, "on_exit_codes": codes});
        for (to, state, min) in needs.into_iter().filter(|_| number > 0) {
            let state = ["started", "ready", "succeeded"][state];
            role["needs"][format!("r{to}")] = json!([state, min]);
        }
        role
    })
}

/// A job, as JSON: a failure is then shown in a line.
fn job() -> impl Strategy<Value = String> {
    let gangs = vec![json!("auto"), json!("required"), json!("none"), json!({"min": 2})];
    let roles = (role(0), role(1), role(2), role(3), 1..5_usize);
    (roles, prop::sample::select(gangs), prop::option::of(1..60_u64)).prop_map(|(roles, gang, timeout)| {
        let (a, b, c, d, count) = roles;
        let mut job = json!({"gang": gang, "roles": {}, "members": ["r0", "r1"]});
        if let Some(timeout) = timeout {
            job["timeout_seconds"] = json!(timeout);
        }
        let mut roles: Vec<Value> = vec![a, b, c, d];
        roles.truncate(count);
        // Only a role with a `ready` check can be needed so, and no role needs more tasks than there are.
        for number in 0..roles.len() {
            let others = roles.clone();
            if let Some(needs) = roles[number].get_mut("needs").and_then(Value::as_object_mut) {
                for (to, need) in needs {
                    let other = &others[to[1..].parse::<usize>().expect("a number")];
                    if need[0] == "ready" && other.get("ready").is_none() {
                        need[0] = json!("started");
                    }
                    need[1] = json!(need[1].as_u64().min(other["instances"].as_u64()));
                }
            }
        }
        for (number, role) in roles.into_iter().enumerate() {
            job["roles"][format!("r{number}")] = role;
        }
        job.to_string()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_a_job_keeps_its_rules_and_ends(
        job in job(),
        events in prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 0..150),
    ) {
        let mut machine = Machine::new(plan(&serde_json::from_str(&job).expect("JSON")));
        machine.step(Input::Tick);
        machine.step(Input::Prepared);
        for (kind, which, choice) in events {
            match kind {
                0..=2 => machine.step(Input::Paused),
                3..=7 => machine.step(Input::Resumed),
                8 => machine.step(Input::Interrupt { why: "interrupted".into() }),
                9 => machine.step(Input::Stop { grace: None, why: "stopped".into() }),
                10 => machine.step(Input::Stop { grace: Some(Duration::from_secs(u64::from(choice))), why: "stopped".into() }),
                11 => machine.step(Input::Kill { why: "killed".into() }),
                12 => machine.step(Input::Broken { why: "no room".into() }),
                51 => machine.step(Input::OverBudget { why: "2 of 2 GPU-hours".into() }),
                41..=43 => machine.step(Input::Suspend),
                44..=50 => machine.step(Input::Readmitted),
                13..=40 => {
                    machine.now = match machine.job.next_tick() {
                        Some(tick) if choice % 2 == 0 => tick.max(machine.now),
                        _ => machine.now + Duration::from_millis(u64::from(choice) * 50),
                    };
                    machine.step(Input::Tick);
                }
                _ => {
                    let alive: Vec<_> = (0..machine.seen.len()).filter(|task| machine.seen[*task] != TaskView::Nothing).collect();
                    let all: Vec<_> = (0..machine.seen.len()).collect();
                    let among = if alive.is_empty() || kind > 245 { all } else { alive };
                    machine.happen(among[usize::from(which) % among.len()], choice);
                }
            }
        }
        machine.run_out();
    }
}
