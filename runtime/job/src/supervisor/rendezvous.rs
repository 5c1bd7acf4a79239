//! Which members of a rendezvous were missing when one of them failed.
//!
//! Processes that wait for each other give up after their framework's timeout, and JAX and PyTorch do not say for whom
//! they waited. The sockets of the members that still run show who never came to the port where all meet.

use std::collections::BTreeMap;

use jobc_schema::distributed::Framework;
use jobc_schema::plan::DistributedPlan;

use super::Supervisor;
use crate::lifecycle::TaskNumber;
use crate::record::JobState;
use jobc_sys::pid_namespace::{members_of, namespace_of};
use jobc_sys::sockets::{Sockets, sockets_of_namespace, sockets_of_process};

/// Of more members the sockets are not read: the event loop would stand still.
const MAX_MEMBERS: usize = 256;

/// So many names are written out.
const MAX_NAMES: usize = 3;

/// What the sockets of a running member show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// It listens at the port.
    Listens,
    /// It is connected to the port, or tries to be.
    Connects,
    /// It does neither.
    Absent,
    /// It cannot be seen, or one of its sockets is in no table: a connection that was reset, for example.
    Unknown,
}

impl Supervisor {
    /// Adds a note on the members that are missing when a task has failed, once for each attempt of the job.
    ///
    /// Called before the others are stopped.
    pub(super) fn note_missing_members(&mut self, failed: TaskNumber) {
        let Some(plan) = self.context.plan.distributed.as_ref().filter(|plan| meets_at_one_port(plan)) else {
            return;
        };
        let attempt = self.lifecycle.attempt();
        if self.lifecycle.state() != JobState::Running || self.rendezvous_checked == Some(attempt) {
            return;
        }
        let tasks = self.lifecycle.tasks();
        let rank_of_role = |task: TaskNumber| {
            let role = &self.context.plan.roles[tasks[task].role].name;
            plan.members.iter().find(|member| member.role == *role)?.first_rank
        };
        let is_first = |&task: &TaskNumber| tasks[task].id.index == 0 && rank_of_role(task) == Some(0);
        let Some(first) = (0..tasks.len()).find(is_first) else { return };
        let running: Vec<(TaskNumber, u32)> = self
            .attempts
            .iter()
            .filter(|&(&task, _)| rank_of_role(task).is_some())
            .map(|(&task, attempt)| (task, attempt.pid()))
            .collect();
        if rank_of_role(failed).is_none() || running.len() > MAX_MEMBERS {
            return;
        }
        let found = presences(plan.port, &running);
        let name = |task: TaskNumber| tasks[task].id.to_string();
        let text = describe(&found, first, failed, plan.port, &name);
        self.rendezvous_checked = Some(attempt);
        if let Some(text) = text {
            self.journal.note(text);
        }
    }
}

/// Whether all members keep a connection to one port of the first, and none may be left out.
fn meets_at_one_port(plan: &DistributedPlan) -> bool {
    matches!(plan.framework, Framework::Torchrun | Framework::Ddp | Framework::Jax) && plan.elastic.is_none()
}

/// What to tell the user of the members that run; nothing if none is missing.
fn describe(
    found: &BTreeMap<TaskNumber, Presence>,
    first: TaskNumber,
    failed: TaskNumber,
    port: u16,
    name: &dyn Fn(TaskNumber) -> String,
) -> Option<String> {
    // One that has succeeded had all of them.
    if first != failed && !found.contains_key(&first) {
        return None;
    }
    let failed = name(failed);
    if found.get(&first) == Some(&Presence::Absent) {
        let first = name(first);
        return Some(format!(
            "`{first}` did not listen at port {port}, where the others meet, when `{failed}` failed"
        ));
    }
    let mut absent = found.iter().filter(|&(&task, &it)| task != first && it == Presence::Absent);
    let named: Vec<String> =
        absent.by_ref().take(MAX_NAMES).map(|(&task, _)| format!("`{}`", name(task))).collect();
    let first = name(first);
    let more = match absent.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| {
        format!("{}{more} had no connection to port {port} of `{first}` when `{failed}` failed", named.join(", "))
    })
}

/// What the sockets of tasks show, by their first processes.
fn presences(port: u16, tasks: &[(TaskNumber, u32)]) -> BTreeMap<TaskNumber, Presence> {
    let firsts: Vec<u32> = tasks.iter().map(|&(_, pid)| pid).collect();
    let processes = members_of(&firsts).unwrap_or_default();
    // Tasks that share a network share its tables.
    let mut networks: BTreeMap<Option<u64>, Option<Sockets>> = BTreeMap::new();
    let presence = |&(task, pid): &(TaskNumber, u32)| {
        let network = network_of(pid);
        let sockets = networks.entry(network).or_insert_with(|| sockets_of_namespace(pid).ok());
        let inside = namespace_of(pid).ok().and_then(|namespace| processes.get(&namespace));
        let presence = match (sockets, inside) {
            (Some(sockets), Some(pids)) if network.is_some() => presence(port, sockets, pids),
            _ => Presence::Unknown,
        };
        (task, presence)
    };
    tasks.iter().map(presence).collect()
}

/// The inode of a process's network namespace.
fn network_of(pid: u32) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|file| file.ino())
}

fn presence(port: u16, sockets: &Sockets, pids: &[u32]) -> Presence {
    let mut presence = Presence::Absent;
    for &pid in pids {
        let Ok(inodes) = sockets_of_process(pid) else { return Presence::Unknown };
        for inode in inodes {
            match sockets.get(&inode) {
                Some(Some(socket)) if socket.listens && socket.local_port == port => {
                    return Presence::Listens;
                }
                Some(Some(socket)) if socket.remote_port == port => return Presence::Connects,
                Some(_) => {}
                None => presence = Presence::Unknown,
            }
        }
    }
    presence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: &[(TaskNumber, Presence)], failed: TaskNumber, expected: Option<&str>) {
        let name = |task: TaskNumber| format!("train-{task}");
        let text = describe(&found.iter().copied().collect(), 0, failed, 1234, &name);
        assert_eq!(text.as_deref(), expected);
    }

    #[test]
    fn who_is_missing_is_named() {
        use Presence::{Absent, Connects, Listens, Unknown};
        check(&[(0, Listens), (2, Connects)], 1, None);
        check(&[(0, Listens), (2, Unknown)], 1, None);
        check(
            &[(0, Listens), (2, Absent), (3, Connects)],
            1,
            Some("`train-2` had no connection to port 1234 of `train-0` when `train-1` failed"),
        );
        // The first has failed itself.
        check(
            &[(1, Absent), (2, Absent), (3, Absent), (4, Absent), (5, Absent)],
            0,
            Some(
                "`train-1`, `train-2`, `train-3` and 2 more had no connection to port 1234 of `train-0` when `train-0` failed",
            ),
        );
        // The first has succeeded.
        check(&[(2, Absent), (3, Connects)], 1, None);
        // Nobody can connect to one that does not listen.
        check(
            &[(0, Absent), (2, Absent)],
            1,
            Some("`train-0` did not listen at port 1234, where the others meet, when `train-1` failed"),
        );
    }

    #[test]
    fn sockets_show_who_is_there() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let sleeper = std::process::Command::new("sleep").arg("60").spawn();
        let mut sleeper = sleeper.expect("sleep starts");
        let own = std::process::id();
        let sockets = sockets_of_namespace(own).expect("this process is there");
        let found = [own, sleeper.id()].map(|pid| presence(port, &sockets, &[pid]));
        sleeper.kill().and_then(|()| sleeper.wait()).expect("it runs");
        assert_eq!(found[0], Presence::Listens);
        assert_ne!(found[1], Presence::Listens);
        assert_eq!(presence(port, &sockets, &[u32::MAX]), Presence::Unknown);
    }
}
