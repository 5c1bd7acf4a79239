//! Whether tasks are ready: what the course wants watched, and what is found.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use jobc_schema::plan::{JobPlan, ProbePlan};
use serde_json::json;

use super::maker::container_name;
use super::share::Share;
use super::{Mail, Sender, Supervisor};
use crate::error::{Error, Kind, Result};
use crate::job::event::Kind as EventKind;
use crate::job::record::TaskState;
use crate::job::{TaskId, Time};
use crate::lifecycle::{Input, TaskNumber};
use crate::process::Exit;
use crate::ready::{Place, Prober, Report, Watched};

/// Where the tasks of a job are.
struct Tasks {
    share: Arc<Share>,
    ids: Vec<TaskId>,
}

impl Place for Tasks {
    fn socket(&self, task: TaskNumber) -> Result<(OwnedFd, IpAddr)> {
        let network = self.share.network();
        let reached = network.as_ref().and_then(|network| Some((network, network.address(task)?)));
        let (network, address) =
            reached.ok_or_else(|| Error::new(Kind::State, "the job's network is gone"))?;
        Ok((network.socket(task)?, address))
    }

    fn run(
        &self,
        task: TaskNumber,
        attempt: u32,
        arguments: &[String],
        within: Duration,
    ) -> Result<Option<Exit>> {
        let name = container_name(&self.share, &self.ids[task], attempt)?;
        crate::ready::run(&self.share.containers, &name, arguments, within)
    }
}

/// What looks whether the tasks of a job are ready; reports come as [`Mail::Looked`].
pub(super) fn prober(share: &Arc<Share>, ids: Vec<TaskId>, mail: Sender<Mail>) -> Prober {
    let tasks = Tasks { share: Arc::clone(share), ids };
    Prober::new(Box::new(tasks), Box::new(move |report| mail.send(Mail::Looked(report))))
}

/// Whether a job's supervisor enters containers in which others run.
pub(super) fn enters_containers(plan: &JobPlan) -> bool {
    let probes = plan.roles.iter().filter_map(|role| role.ready.as_ref());
    probes.into_iter().any(|ready| matches!(ready.probe, ProbePlan::Exec(_)))
}

impl Supervisor {
    /// Begins to look whether a task is ready.
    pub(super) fn watch(&mut self, task: TaskNumber) -> Option<Input> {
        let known = &self.lifecycle.tasks()[task];
        let plan = &self.share.plan;
        let role = &plan.roles[known.role];
        match Watched::of(plan, role, known.id.index, task, known.attempt) {
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
    pub(super) fn take_report(&mut self, report: Report) {
        let Report { task, attempt, ready } = report;
        let known = &self.lifecycle.tasks()[task];
        if known.attempt != attempt || !matches!(known.state, TaskState::Running | TaskState::Ready) {
            return;
        }
        match ready {
            Ok(()) => {
                let now = Time::now();
                let record = self.journal.of(task);
                let after = record.started.map(|started| now.since(started).as_millis());
                record.ready.get_or_insert(now);
                let after = after.and_then(|millis| u64::try_from(millis).ok());
                self.journal.task(task, EventKind::Ready, json!({ "after_ms": after }));
                self.step(Input::Ready(task));
            }
            Err(why) => {
                self.journal.task(task, EventKind::NotReady, json!({ "why": why }));
                self.step(Input::NotReady { task, why });
            }
        }
    }
}
