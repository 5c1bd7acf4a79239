//! A group while it lives, and its end: processes, freezing, killing, removal.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::controller::Controller;
use super::file::write;
use super::layout::{Layout, Version};
use super::record::{Cgroup, GroupRecord};
use jobc_sys::error::{Error, Kind, Result};

/// How long to wait for processes to halt, to end, or to leave a group.
const LIFECYCLE_TIMEOUT: Duration = Duration::from_secs(5);

impl Cgroup {
    /// The processes in the group and in groups below it, as this process's pid namespace numbers them.
    pub fn processes(&self) -> Result<Vec<u32>> {
        let Some(group) = self.listing_group() else { return Ok(vec![]) };
        let mut list: Vec<u32> = vec![];
        for directory in descendants(&group.directory).into_iter().chain([group.directory.clone()]) {
            match fs::read_to_string(directory.join("cgroup.procs")) {
                // A process outside our pid namespaces is shown as 0.
                Ok(text) => list
                    .extend(text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid != 0)),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(failed("read the processes of", &directory, &error)),
            }
        }
        Ok(list)
    }

    /// Kills every process in the group and below it, and waits until all have exited.
    ///
    /// Version 2 does it in one step that no fork escapes (`cgroup.kill`, Linux 5.14). Otherwise the group is frozen
    /// while its processes are sent the signal, until none is left.
    pub fn kill(&self) -> Result<()> {
        let Some(group) = self.listing_group() else { return Ok(()) };
        let until = Instant::now() + LIFECYCLE_TIMEOUT;
        let at_once = group.version == Version::V2
            && match write(&group.directory.join("cgroup.kill"), "1") {
                Ok(()) => true,
                Err(Errno::NOENT) if !group.directory.exists() => return Ok(()),
                Err(_) => false,
            };
        for pause in backoff_delays(until) {
            let list = self.processes()?;
            if list.is_empty() {
                return Ok(());
            }
            if !at_once {
                let frozen = self.freeze().is_ok();
                for pid in self.processes()? {
                    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
                    let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
                }
                if frozen {
                    self.thaw()?;
                }
            }
            std::thread::sleep(pause);
        }
        let left = self.processes()?.len();
        let message = format!("{left} processes in `{}` do not exit", group.directory.display());
        Err(Error::new(Kind::System, message)
            .help("they are blocked in the kernel, for example on a disk or a network file system"))
    }

    /// Halts every process in the group, and waits until they have.
    pub fn freeze(&self) -> Result<()> {
        self.set_frozen(true)
    }

    /// Lets the processes in the group go on.
    pub fn thaw(&self) -> Result<()> {
        self.set_frozen(false)
    }

    fn set_frozen(&self, frozen: bool) -> Result<()> {
        let Some(group) = self.freezer_group() else {
            return Err(Error::new(Kind::Unenforceable, "the container has no cgroup that can be frozen"));
        };
        let (file, text, state, shown) = match (group.version, frozen) {
            (Version::V2, true) => ("cgroup.freeze", "1", "cgroup.events", "frozen 1"),
            (Version::V2, false) => ("cgroup.freeze", "0", "cgroup.events", "frozen 0"),
            (Version::V1, true) => ("freezer.state", "FROZEN", "freezer.state", "FROZEN"),
            (Version::V1, false) => ("freezer.state", "THAWED", "freezer.state", "THAWED"),
        };
        let what = if frozen { "freeze" } else { "thaw" };
        write(&group.directory.join(file), text)
            .map_err(|errno| Error::system(format!("{what} `{}`", group.directory.display()), errno))?;
        for pause in backoff_delays(Instant::now() + LIFECYCLE_TIMEOUT) {
            let now = fs::read_to_string(group.directory.join(state))
                .map_err(|error| failed("read the state of", &group.directory, &error))?;
            if now.lines().any(|line| line == shown) {
                return Ok(());
            }
            std::thread::sleep(pause);
        }
        let message = format!("the processes in `{}` do not {what}", group.directory.display());
        Err(Error::new(Kind::System, message)
            .help("they are blocked in the kernel, for example on a disk or a network file system"))
    }

    /// Whether the group is frozen now.
    pub fn is_frozen(&self) -> Result<bool> {
        let Some(group) = self.freezer_group() else { return Ok(false) };
        let (file, shown) = match group.version {
            Version::V2 => ("cgroup.freeze", "1"),
            Version::V1 => ("freezer.state", "FROZEN"),
        };
        match fs::read_to_string(group.directory.join(file)) {
            Ok(text) => Ok(text.trim() == shown),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(failed("read the state of", &group.directory, &error)),
        }
    }

    /// Removes the groups, those made below them, and the directories above that were made for them and are empty now.
    ///
    /// Waits a while for processes that are exiting. A group that is already removed is not an error.
    pub fn remove(&self) -> Result<()> {
        let mut result = Ok(());
        // Whoever takes the name later makes all groups anew: if the first is the one that was created, the others are too.
        let are_ours = self.record.groups.first().is_some_and(GroupRecord::exists);
        for group in self.record.groups.iter().filter(|group| are_ours || group.exists()) {
            match remove_group(&group.directory) {
                Ok(()) => {
                    for directory in &group.above {
                        // In use by another container, or removed by one.
                        let _ = rustix::fs::rmdir(directory);
                    }
                }
                Err(errno) => {
                    let what = format!("remove the cgroup `{}`", group.directory.display());
                    result = result.and(Err(Error::system(what, errno)));
                }
            }
        }
        result
    }

    /// The group that lists the processes.
    fn listing_group(&self) -> Option<&GroupRecord> {
        self.freezer_group().or_else(|| self.existing_groups().next())
    }

    /// The group that can be frozen.
    fn freezer_group(&self) -> Option<&GroupRecord> {
        let unified = self.existing_groups().find(|group| group.version == Version::V2);
        unified
            .or_else(|| self.existing_groups().find(|group| group.controllers.contains(&Controller::Freezer)))
    }

    fn existing_groups(&self) -> impl Iterator<Item = &GroupRecord> {
        self.record.groups.iter().filter(|group| group.exists())
    }
}

/// The group of the cgroup v2 hierarchy that an additional process enters: `directory`, or the one below it that holds
/// process `first` where `directory` passes controllers on.
pub(super) fn group_of_process(directory: &Path, first: u32) -> Result<PathBuf> {
    let passes_on =
        fs::read(directory.join("cgroup.subtree_control")).is_ok_and(|list| !list.trim_ascii().is_empty());
    if !passes_on {
        return Ok(directory.to_owned());
    }
    let unified = Layout::of_process(first)?.unified;
    let held = unified.and_then(|unified| Some(unified.mount.join(unified.own_group?)));
    held.filter(|held| held.starts_with(directory)).ok_or_else(|| {
        let message = format!("the cgroup `{}` enables controllers for its children, so it cannot hold processes, and the container's first process is not below it", directory.display());
        Error::new(Kind::State, message)
    })
}

/// Removes the group `jobc/<name>` in every hierarchy where this process could have created one, with the groups below
/// it that have no processes.
///
/// For groups that a killed process created and had not recorded yet.
pub fn remove_empty(layout: &Layout, name: &str) {
    let hierarchies = layout.hierarchies.iter().map(|hierarchy| (&hierarchy.mount, &hierarchy.own_group));
    let trees = layout.unified.iter().map(|unified| (&unified.mount, &unified.own_group));
    for (mount, own) in hierarchies.chain(trees) {
        // At the top, or below a group that an unprivileged user was given.
        let given = own.iter().flat_map(|own| own.ancestors()).filter(|group| !group.as_os_str().is_empty());
        for base in std::iter::once(mount.clone()).chain(given.map(|group| mount.join(group))) {
            let group = base.join("jobc").join(name);
            for directory in descendants(&group).into_iter().chain([group]) {
                // A group with processes stays.
                let _ = rustix::fs::rmdir(directory);
            }
        }
    }
}

/// Removes a group and the groups below it, the deepest first.
fn remove_group(directory: &Path) -> std::result::Result<(), Errno> {
    let mut last = Errno::BUSY;
    for pause in backoff_delays(Instant::now() + LIFECYCLE_TIMEOUT) {
        match rustix::fs::rmdir(directory) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY | Errno::NOTEMPTY) => {
                let mut removed = false;
                for group in descendants(directory) {
                    removed |= rustix::fs::rmdir(&group).is_ok();
                }
                if removed {
                    continue;
                }
            }
            Err(errno) => last = errno,
        }
        if last != Errno::BUSY {
            break;
        }
        std::thread::sleep(pause);
    }
    Err(last)
}

/// The groups below a group, the deepest first.
fn descendants(directory: &Path) -> Vec<PathBuf> {
    let mut list = vec![];
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        list.extend(descendants(&entry.path()));
        list.push(entry.path());
    }
    list
}

/// Pauses that grow from 0.2 to 50 milliseconds until the time is up; the first starts immediately.
fn backoff_delays(until: Instant) -> impl Iterator<Item = Duration> {
    let first = Duration::from_micros(200);
    std::iter::successors(Some(first), |pause| Some((*pause * 2).min(Duration::from_millis(50))))
        .take_while(move |pause| *pause == first || Instant::now() < until)
}

/// Whether a group is gone: the file does not exist, or was open while its group was removed.
fn is_gone(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NODEV))
}

fn failed(what: &str, directory: &Path, error: &std::io::Error) -> Error {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    Error::system(format!("{what} the cgroup `{}`", directory.display()), errno)
}
