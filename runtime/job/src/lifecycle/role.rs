//! The common data of a role's tasks: the rules of the plan, and counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use jobc_schema::plan::{CompletionPlan, JobPlan, Launch, RetryPlan, RolePlan};
use jobc_schema::role::NeedState;
use jobc_schema::stall::StallAction;

use super::task::{RoleNumber, TaskNumber, TaskProgress};

/// A role and the progress of its tasks.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Role {
    pub(super) name: String,
    pub(super) instances: u32,
    /// Its tasks' numbers.
    pub(super) tasks: Range<TaskNumber>,
    /// How many may be alive at once.
    pub(super) parallel: usize,
    pub(super) needs: Vec<Need>,
    /// The roles that need it.
    pub(super) needed_by: Vec<RoleNumber>,
    pub(super) completion: CompletionPlan,
    /// The fewest instances of its elastic rendezvous, if it is a member of one.
    pub(super) elastic_min: Option<u32>,
    pub(super) retry: RetryPlan,
    /// Whether an attempt that makes no progress is retried.
    pub(super) restarts_stalls: bool,
    /// The time limit of an attempt.
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    /// Whether its tasks have GPUs.
    pub(super) has_gpus: bool,
    /// Whether it has checks before its command.
    pub(super) has_preflight: bool,
    /// Whether it has a `ready` check.
    pub(super) has_ready_check: bool,
    serving: LaunchRole,
    /// Its index among the roles with a limit on concurrent combinations, if it has one.
    pub(super) combinations: Option<usize>,
    /// Whether its needs have been met, once for all attempts of it.
    pub(super) open: bool,
    /// Tasks to make, lowest first.
    pub(super) queue: BTreeSet<TaskNumber>,
    /// The gang that its first tasks are in.
    pub(super) gang: Option<usize>,
    pub(super) counts: Counts,
    /// How often the whole role was retried.
    pub(super) retries: u32,
    /// How often the whole role was resumed.
    pub(super) resumes: u32,
    /// Whether the wait before its next attempt is over.
    pub(super) due: bool,
}

/// A role that must be there first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) role: RoleNumber,
    pub(super) state: NeedState,
    pub(super) min: usize,
}

/// How many of a role's tasks, each by its latest attempt …
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// … have a process, or will have one at any moment.
    pub(super) alive: usize,
    /// … have run.
    pub(super) started: usize,
    /// … have once been ready.
    pub(super) ready: usize,
    /// … are over.
    pub(super) ended: usize,
    /// … have succeeded.
    pub(super) succeeded: usize,
    /// … have failed for good.
    pub(super) failed: usize,
    /// … are over without having run.
    pub(super) never_started: usize,
    /// … are over without having been ready.
    pub(super) never_ready: usize,
}

/// Whether a role's tasks launch the job's processes or serve the launchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaunchRole {
    /// It does neither.
    Independent,
    /// All launch.
    None,
    /// All but the first serve.
    AllButFirst,
    /// All serve.
    All,
}

impl Role {
    /// Number of tasks that have reached a state.
    pub(super) fn reached(&self, state: NeedState) -> usize {
        match state {
            NeedState::Started => self.counts.started,
            NeedState::Ready => self.counts.ready,
            NeedState::Succeeded => self.counts.succeeded,
        }
    }

    /// Number of tasks that can no longer reach a state.
    pub(super) fn missed(&self, state: NeedState) -> usize {
        match state {
            NeedState::Started => self.counts.never_started,
            NeedState::Ready => self.counts.never_ready,
            NeedState::Succeeded => self.counts.failed,
        }
    }

    /// Whether there is a task to make, and room for it.
    pub(super) fn can_create_task(&self) -> bool {
        !self.queue.is_empty() && self.counts.alive < self.parallel
    }

    /// The progress of an instance before anything has happened.
    pub(super) fn initial_progress(&self, index: u32) -> TaskProgress {
        let serves = match self.serving {
            LaunchRole::Independent | LaunchRole::None => false,
            LaunchRole::AllButFirst => index > 0,
            LaunchRole::All => true,
        };
        let launches = self.serving != LaunchRole::Independent && !serves;
        TaskProgress { serves, launches, ..TaskProgress::default() }
    }
}

/// The roles of a plan, before anything has happened.
pub(super) fn of_plan(plan: &JobPlan) -> Vec<Role> {
    let numbers: BTreeMap<&str, RoleNumber> =
        plan.roles.iter().enumerate().map(|(number, role)| (&*role.name, number)).collect();
    let members: BTreeSet<&str> =
        plan.distributed.iter().flat_map(|d| &d.members).map(|member| &*member.role).collect();
    let elastic_min = plan.distributed.as_ref().and_then(|d| d.elastic.as_ref()).map(|elastic| elastic.min);
    let mut roles = Vec::with_capacity(plan.roles.len());
    let mut first = 0;
    for planned in &plan.roles {
        let tasks = first..first + planned.instances as usize;
        first = tasks.end;
        // A plan has each role that is needed; an unknown role never exists, and nothing waits for it.
        let needs = planned.needs.iter().filter_map(|need| {
            let role = *numbers.get(&*need.role)?;
            let min = need.min.min(plan.roles[role].instances) as usize;
            Some(Need { role, state: need.state, min })
        });
        roles.push(Role {
            name: planned.name.clone(),
            instances: planned.instances,
            tasks,
            parallel: planned.parallel.unwrap_or(u32::MAX).max(1) as usize,
            needs: needs.collect(),
            needed_by: Vec::new(),
            completion: planned.completion,
            elastic_min: elastic_min.filter(|_| members.contains(&*planned.name)),
            retry: planned.retry.clone(),
            restarts_stalls: planned.stall.as_ref().is_some_and(|stall| stall.action == StallAction::Restart),
            timeout: planned.timeout_seconds.map(Duration::from_secs),
            grace: Duration::from_secs(planned.grace_period_seconds),
            has_gpus: planned.gpus().is_some(),
            has_preflight: !planned.preflight.is_empty(),
            has_ready_check: planned.ready.is_some(),
            serving: serving(planned, members.contains(&*planned.name)),
            combinations: None,
            open: false,
            queue: BTreeSet::new(),
            gang: None,
            counts: Counts::default(),
            retries: 0,
            resumes: 0,
            due: false,
        });
    }
    for number in 0..roles.len() {
        for need in roles[number].needs.clone() {
            roles[need.role].needed_by.push(number);
        }
    }
    roles
}

fn serving(role: &RolePlan, member: bool) -> LaunchRole {
    match role.launch {
        Launch::All if member => LaunchRole::None,
        Launch::All => LaunchRole::Independent,
        Launch::First => LaunchRole::AllButFirst,
        Launch::None => LaunchRole::All,
    }
}
