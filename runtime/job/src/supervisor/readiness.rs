//! Whether tasks are ready: starts checks that the lifecycle requests, and handles their reports.

use jobc_schema::plan::{JobPlan, ProbePlan};
use serde_json::json;

use super::Supervisor;
use crate::event::Kind as EventKind;
use crate::lifecycle::{Input, TaskNumber};
use crate::ready::{ReadinessCheck, Report};
use jobc_place::task::TaskState;
use jobc_place::time::Time;

/// Whether a job's supervisor enters containers in which others run.
pub(super) fn enters_containers(plan: &JobPlan) -> bool {
    let probes = plan.roles.iter().filter_map(|role| role.ready.as_ref());
    probes.into_iter().any(|ready| matches!(ready.probe, ProbePlan::Exec(_)))
}

impl Supervisor {
    /// Begins to check whether a task is ready.
    pub(super) fn watch(&mut self, task: TaskNumber) -> Option<Input> {
        if self.run.is_some() {
            // The agents of the nodes do.
            return None;
        }
        let known = &self.lifecycle.tasks()[task];
        let plan = &self.context.plan;
        let role = &plan.roles[known.role];
        match ReadinessCheck::of(plan, role, known.id.index, task, known.attempt) {
            Ok(watched) => {
                if let Some(watched) = watched {
                    self.prober.watch(watched);
                }
                None
            }
            Err(error) => Some(Input::NotReady { task, why: error.to_string() }),
        }
    }

    /// Something was found of a task; of an attempt that is over it is too late.
    pub(super) fn handle_readiness(&mut self, report: Report) {
        let Report { task, attempt, ready } = report;
        let known = &self.lifecycle.tasks()[task];
        if known.attempt != attempt || !matches!(known.state, TaskState::Running | TaskState::Ready) {
            return;
        }
        match ready {
            Ok(()) => {
                let now = Time::now();
                let record = self.journal.task_mut(task);
                let after = record.started.map(|started| now.since(started).as_millis());
                record.ready.get_or_insert(now);
                let after = after.and_then(|millis| u64::try_from(millis).ok());
                self.journal.task_event(task, EventKind::Ready, json!({ "after_ms": after }));
                self.step(Input::Ready(task));
            }
            Err(why) => {
                self.journal.task_event(task, EventKind::NotReady, json!({ "why": why }));
                self.step(Input::NotReady { task, why });
            }
        }
    }
}
