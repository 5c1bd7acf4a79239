//! The features of this host, and how to get those that are missing.
//!
//! A [`Check`] is a row of a table: its name, its purpose, who needs it, and a small function. The function examines
//! the host through the trait [`Host`], so that tests can describe hosts. Where possible the kernel is tested instead
//! of read: a namespace counts as available if a process of this user got one, not if a setting allows it. A
//! [`probe`](jobc_container::probe) makes such tests in a separate process, which removes everything it created when it
//! exits, so nothing on the host changes. A program or a test that takes longer than [`host::PROBE_TIMEOUT`] is killed.
//! A check that does not return, as from a file system whose server is down, is left behind.
#![cfg(target_os = "linux")]
#![allow(clippy::similar_names, reason = "uid and gid, list and last: the words of the subject")]

mod capabilities;
mod cgroups;
mod check;
mod directories;
mod distribution;
mod file_systems;
pub mod gpus;
pub mod host;
mod ids;
mod jobs;
mod kernel;
mod limits;
mod namespaces;
mod network;
pub mod runtimes;
mod security;
pub mod setup;

use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde::Serialize;

use check::{Check, CheckResult, Need};

pub use check::Status;
pub use host::{Host, LocalHost};

/// The subjects in the order they are shown.
const SUBJECTS: [(&str, &[Check]); 13] = [
    ("jobs", jobs::CHECKS),
    ("kernel", kernel::CHECKS),
    ("namespaces", namespaces::CHECKS),
    ("user ids", ids::CHECKS),
    ("cgroups", cgroups::CHECKS),
    ("file systems", file_systems::CHECKS),
    ("capabilities", capabilities::CHECKS),
    ("security", security::CHECKS),
    ("limits", limits::CHECKS),
    ("network", network::CHECKS),
    ("GPUs", gpus::CHECKS),
    ("other runtimes", runtimes::CHECKS),
    ("places", directories::CHECKS),
];

/// What a host can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The version of this format: 1.
    pub version: u32,
    /// The user who runs the checks.
    pub user: host::User,
    /// Whether containers can be run.
    pub containers: Containers,
    /// All checks, in the order of their subjects.
    pub checks: Vec<Finding>,
}

/// Whether containers can be run, and by which users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Containers {
    /// By root; absent if an unprivileged user runs the checks, who cannot know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<ContainerSupport>,
    /// By the unprivileged user who runs the checks, or by another one if root runs them.
    pub user: ContainerSupport,
}

/// Whether any user can run containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainerSupport {
    /// `ok`: yes; `limited`: yes, without some things; `missing`: no.
    pub status: Status,
    /// Their missing requirements, or the cause: text, or names of checks.
    pub without: Vec<String>,
}

/// One check with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The subject's heading.
    pub subject: &'static str,
    /// The check's stable name.
    pub name: &'static str,
    /// How far it is available.
    pub status: Status,
    /// The finding, as text.
    pub found: String,
    /// What it is for, as words that follow "for".
    pub purpose: &'static str,
    /// Whether the user who runs the checks cannot run containers without it.
    pub needed: bool,
    /// Commands or settings that would help; empty if all is well, or if nothing can be done.
    pub fix: Vec<String>,
    /// Those of them that root can run as they are, for `sh`, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// Timeout of a check: some make three tests.
const CHECK_TIMEOUT: Duration = Duration::from_secs(12);

/// Runs all checks.
pub fn examine(machine: impl Host) -> Report {
    let machine: Arc<dyn Host> = Arc::new(machine);
    examine_within(&machine, CHECK_TIMEOUT)
}

fn examine_within(machine: &Arc<dyn Host>, longest: Duration) -> Report {
    let user = machine.user();
    let (root, rootless) = (user.is_root(), machine.needs_user_namespace());
    let mut checks = vec![];
    let mut answer = ContainerSupport { status: Status::Ok, without: vec![] };
    let mut for_all = true;
    for (subject, check) in SUBJECTS.iter().flat_map(|(subject, checks)| checks.iter().map(|c| (*subject, c)))
    {
        let CheckResult { status, message: found, fix, commands, caused_by: follows } =
            run_check(check, machine, longest);
        let needed = match check.need {
            Need::Everyone | Need::CurrentUser => true,
            Need::Root => !rootless,
            Need::User => rootless,
            Need::Optional(_) => false,
        };
        answer.count(check, status, needed, follows.is_none());
        for_all &= check.need != Need::Everyone || status != Status::Missing;
        let Check { name, purpose, .. } = *check;
        checks.push(Finding { subject, name, status, found, purpose, needed, fix, commands });
    }
    // A job fails for the same reason as its parts, if that is known.
    if answer.status == Status::Missing && answer.without.len() > 1 {
        answer.without.retain(|name| name != jobs::RUN);
    }
    let containers = if root {
        let tried = checks
            .iter()
            .any(|check| check.name == namespaces::UNPRIVILEGED_USER && check.status != Status::Missing);
        let user = match (for_all, tried) {
            (true, true) => ContainerSupport { status: Status::Ok, without: vec![] },
            (true, false) => ContainerSupport {
                status: Status::Missing,
                without: vec![namespaces::UNPRIVILEGED_USER.to_owned()],
            },
            (false, _) => answer.clone(),
        };
        Containers { root: Some(answer), user }
    } else {
        Containers { root: None, user: answer }
    };
    Report { version: 1, user, containers, checks }
}

/// Runs a check in its own thread, which is left behind if it does not return.
fn run_check(check: &Check, machine: &Arc<dyn Host>, longest: Duration) -> CheckResult {
    let (answer, answers) = mpsc::channel();
    let (look, machine) = (check.run, Arc::clone(machine));
    std::thread::spawn(move || {
        // After a timeout the receiver is gone.
        let _ = answer.send(look(&*machine));
    });
    answers
        .recv_timeout(longest)
        .unwrap_or_else(|_| CheckResult::missing(format!("timed out after {} s", longest.as_secs_f32())))
}

impl ContainerSupport {
    /// Takes a check's outcome into account.
    fn count(&mut self, check: &Check, status: Status, needed: bool, is_cause: bool) {
        if needed && status == Status::Missing {
            if self.status != Status::Missing {
                *self = Self { status: Status::Missing, without: vec![] };
            }
            if is_cause {
                self.without.push(check.name.to_owned());
            }
        }
        if let Need::Optional(without) = check.need
            && !without.is_empty()
            && status == Status::Missing
            && self.status != Status::Missing
        {
            self.status = Status::Limited;
            self.without.push(without.to_owned());
        }
    }
}

impl Report {
    /// Whether the user who runs the checks can run containers.
    pub fn can_run(&self) -> bool {
        self.containers.root.as_ref().unwrap_or(&self.containers.user).status != Status::Missing
    }

    /// Whether containers can be run, as a line for users.
    pub fn summary(&self) -> String {
        let user = self.containers.user.words();
        match &self.containers.root {
            Some(root) => format!("containers as root: {}; as an unprivileged user: {user}", root.words()),
            None => format!("containers as this user ({}): {user}", self.user.uid),
        }
    }
}

impl ContainerSupport {
    fn words(&self) -> String {
        match self.status {
            Status::Missing => format!("no, see {}", self.without.join(", ")),
            _ if self.without.is_empty() => "yes".to_owned(),
            _ => format!("yes, without {}", self.without.join(", without ")),
        }
    }
}

#[cfg(test)]
mod tests;
