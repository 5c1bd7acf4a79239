//! The readiness prober, and how it reaches tasks.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::context::JobContext;
use super::mailbox::Sender;
use super::message::Message;
use super::spawner::container_name;
use crate::lifecycle::TaskNumber;
use crate::ready::{Prober, TaskAccess};
use jobc_container::process::Exit;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

/// Where the tasks of a job are.
struct JobTasks {
    share: Arc<JobContext>,
    ids: Vec<TaskId>,
}

impl TaskAccess for JobTasks {
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

/// The prober of a job's tasks; reports come as [`Message::Readiness`].
pub(super) fn create_prober(share: &Arc<JobContext>, ids: Vec<TaskId>, mail: Sender<Message>) -> Prober {
    let tasks = JobTasks { share: Arc::clone(share), ids };
    Prober::new(Box::new(tasks), Box::new(move |report| mail.send(Message::Readiness(report))))
}
