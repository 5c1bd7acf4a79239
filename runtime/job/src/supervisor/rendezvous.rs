//! Finds the members of a rendezvous that were missing when one of them failed.
//!
//! Processes that wait for each other give up after their framework's timeout, and JAX and PyTorch do not report for
//! whom they waited. The sockets of the members show who has come to the port where all meet. They are looked at until
//! all have come: when a member fails, the connections of the others may be closed before its end is known here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jobc_schema::distributed::Framework;
use jobc_schema::plan::{DistributedPlan, JobPlan};

use super::Supervisor;
use crate::lifecycle::{Lifecycle, TaskNumber};
use jobc_place::state::JobState;
use jobc_sys::pid_namespace::{members_of, namespace_of};
use jobc_sys::sockets::{Sockets, sockets_of_namespace, sockets_of_process};

/// Of more members the sockets are not read: the event loop would stand still.
const MAX_MEMBERS: usize = 256;

/// Maximum names in a message.
const MAX_NAMES: usize = 3;

/// How often the sockets are read until all members have come, if it costs little.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The minimum rate: less than any timeout of a rendezvous.
const MAX_INTERVAL: Duration = Duration::from_secs(5);

/// The maximum share of the time spent on it, between the two intervals.
const COST_DIVISOR: u32 = 100;

/// A member that fails earlier has not waited for the first: its program has another error.
const MIN_WAIT: Duration = Duration::from_secs(10);

/// The members that have joined the rendezvous in one attempt of the job.
#[derive(Debug)]
pub(super) struct RendezvousWatch {
    port: u16,
    members: BTreeSet<TaskNumber>,
    /// The member that listens.
    first: TaskNumber,
    attempt: u32,
    began: Instant,
    arrived: BTreeSet<TaskNumber>,
    /// When to look next; never once all have come or one has failed.
    next: Option<Instant>,
}

/// The state of the sockets of a running member.
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

impl RendezvousWatch {
    /// A watch for a job whose members all meet at one port; `None` for other jobs.
    pub(super) fn new(plan: &JobPlan, lifecycle: &Lifecycle) -> Option<Self> {
        let distributed = plan.distributed.as_ref().filter(|plan| meets_at_one_port(plan))?;
        let rank = |role: usize| {
            let name = &plan.roles[role].name;
            distributed.members.iter().find(|member| member.role == *name)?.first_rank
        };
        let tasks = lifecycle.tasks();
        let members: BTreeSet<TaskNumber> =
            (0..tasks.len()).filter(|&task| rank(tasks[task].role).is_some()).collect();
        let first = members
            .iter()
            .copied()
            .find(|&task| tasks[task].id.index == 0 && rank(tasks[task].role) == Some(0))?;
        (2..=MAX_MEMBERS).contains(&members.len()).then(|| Self {
            port: distributed.port,
            members,
            first,
            attempt: 0,
            began: Instant::now(),
            arrived: BTreeSet::new(),
            next: None,
        })
    }

    /// A task has begun in an attempt of the job: a new attempt is a new rendezvous.
    pub(super) fn begin(&mut self, attempt: u32) {
        if self.attempt != attempt {
            let now = Instant::now();
            (self.attempt, self.began, self.next) = (attempt, now, Some(now + MIN_INTERVAL));
            self.arrived.clear();
        }
    }

    /// Adds the running members that are at the port, and decides when to look next.
    fn look(&mut self, running: &[(TaskNumber, u32)]) {
        let began = Instant::now();
        let at_port = |it: Presence| matches!(it, Presence::Listens | Presence::Connects);
        let found = presences(self.port, running);
        self.arrived.extend(found.iter().filter(|&(_, &it)| at_port(it)).map(|(&task, _)| task));
        let now = Instant::now();
        let complete = self.arrived.len() == self.members.len();
        self.next =
            (!complete).then(|| now + ((now - began) * COST_DIVISOR).clamp(MIN_INTERVAL, MAX_INTERVAL));
    }

    /// The note for the user when a member failed after this time; `None` if no member is known to be missing.
    fn describe(
        &self,
        found: &BTreeMap<TaskNumber, Presence>,
        failed: TaskNumber,
        ran: Duration,
        name: &dyn Fn(TaskNumber) -> String,
    ) -> Option<String> {
        let port = self.port;
        let is_missing = |task: TaskNumber| {
            !self.arrived.contains(&task) && task != failed && found.get(&task) == Some(&Presence::Absent)
        };
        let (failed_name, first) = (name(failed), name(self.first));
        if is_missing(self.first) {
            return (ran >= MIN_WAIT).then(|| {
                format!("`{first}` did not listen at port {port}, where the others meet, when `{failed_name}` failed")
            });
        }
        if !self.arrived.contains(&failed) {
            return None;
        }
        let mut missing = self.members.iter().copied().filter(|&task| is_missing(task));
        let named: Vec<String> =
            missing.by_ref().take(MAX_NAMES).map(|task| format!("`{}`", name(task))).collect();
        let more = match missing.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!named.is_empty()).then(|| {
            format!(
                "{}{more} had no connection to port {port} of `{first}` when `{failed_name}` failed",
                named.join(", ")
            )
        })
    }
}

impl Supervisor {
    /// When to look for the members of the rendezvous next.
    pub(super) fn next_look_at_members(&self) -> Option<Instant> {
        self.rendezvous.as_ref().filter(|_| !self.attempts.is_empty())?.next
    }

    /// Checks which members have joined the rendezvous, if it is time.
    pub(super) fn look_at_members(&mut self) {
        if self.next_look_at_members().is_some_and(|due| due <= Instant::now()) {
            let running = self.running_members();
            if let Some(watch) = &mut self.rendezvous {
                watch.look(&running);
            }
        }
    }

    /// Adds a note on the members that are missing when a task has failed, once for each attempt of the job.
    ///
    /// Called before the others are stopped.
    pub(super) fn note_missing_members(&mut self, failed: TaskNumber) {
        let running = self.running_members();
        let Some(watch) = &mut self.rendezvous else { return };
        // Once all have come, or one has failed before, there is nothing to add.
        let waits = watch.next.is_some() && watch.members.contains(&failed);
        if !waits || self.lifecycle.state() != JobState::Running {
            return;
        }
        watch.next = None;
        let found = presences(watch.port, &running);
        let name = |task: TaskNumber| self.lifecycle.tasks()[task].id.to_string();
        if let Some(text) = watch.describe(&found, failed, watch.began.elapsed(), &name) {
            self.journal.note(text);
        }
    }

    /// The members that run, and their first processes.
    fn running_members(&self) -> Vec<(TaskNumber, u32)> {
        let Some(watch) = &self.rendezvous else { return vec![] };
        let attempts = self.attempts.iter().filter(|(task, _)| watch.members.contains(task));
        attempts.map(|(&task, attempt)| (task, attempt.process.pid())).collect()
    }
}

/// Whether all members keep a connection to one port of the first, and none may be left out.
fn meets_at_one_port(plan: &DistributedPlan) -> bool {
    let meets = matches!(
        plan.framework,
        Framework::Torchrun | Framework::Ddp | Framework::Jax | Framework::Accelerate | Framework::Composer
    );
    meets && plan.elastic.is_none()
}

/// The state of the sockets of tasks, by their first processes.
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
    fn check(
        arrived: &[TaskNumber],
        found: &[(TaskNumber, Presence)],
        failed: TaskNumber,
        expected: Option<&str>,
    ) {
        let watch = RendezvousWatch {
            port: 1234,
            members: (0..6).collect(),
            first: 0,
            attempt: 1,
            began: Instant::now(),
            arrived: arrived.iter().copied().collect(),
            next: None,
        };
        let name = |task: TaskNumber| format!("train-{task}");
        let text = watch.describe(&found.iter().copied().collect(), failed, MIN_WAIT, &name);
        assert_eq!(text.as_deref(), expected);
        let early = watch.describe(&found.iter().copied().collect(), failed, Duration::ZERO, &name);
        assert_eq!(
            early,
            text.filter(|text| !text.contains("did not listen")),
            "too early for having waited"
        );
    }

    #[test]
    fn missing_members_are_named() {
        use Presence::{Absent, Connects, Unknown};
        check(&[0, 1], &[(2, Connects), (3, Unknown)], 1, None);
        // Its connection is closed by now, but it had one.
        check(&[0, 1, 2], &[(0, Absent), (2, Absent)], 1, None);
        // The failed member had not joined itself: its own error explains it.
        check(&[0], &[(2, Absent)], 1, None);
        check(
            &[0, 1, 3],
            &[(2, Absent), (3, Connects)],
            1,
            Some("`train-2` had no connection to port 1234 of `train-0` when `train-1` failed"),
        );
        check(
            &[0],
            &[(1, Absent), (2, Absent), (3, Absent), (4, Absent), (5, Absent)],
            0,
            Some(
                "`train-1`, `train-2`, `train-3` and 2 more had no connection to port 1234 of `train-0` when `train-0` failed",
            ),
        );
        // There is nothing to connect to.
        check(
            &[],
            &[(0, Absent), (2, Absent)],
            1,
            Some("`train-0` did not listen at port 1234, where the others meet, when `train-1` failed"),
        );
        // The first process has exited, so its sockets are unknown.
        check(&[], &[(2, Absent)], 1, None);
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
