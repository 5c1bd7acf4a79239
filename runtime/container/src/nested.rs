//! Containers inside a container: the restrictions of the outer container on the containers that this process starts.
//!
//! Container engines take capabilities from root, filter syscalls, mask parts of /proc and /sys, and mount /etc/hosts
//! and others as files. A user namespace lifts most of these restrictions. A [`probe`] tests the others once; then
//! [`rootless::adapt`](crate::rootless::adapt) works around them, or nothing is started and the error says which
//! options the outer container needs.

mod engine;

use std::sync::OnceLock;
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::{ProcessStatus, needs_user_namespace};
use jobc_sys::{kernel_file, run_with_timeout};

use crate::probe;

pub use engine::Engine;

/// Features that containers of this process lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// No new procfs: parts of /proc are masked, and a new one would show them (`mount_too_revealing` of the kernel).
    pub no_proc: bool,
    /// No new sysfs, for the same reason.
    pub no_sysfs: bool,
    /// No separate host name: a seccomp filter forbids sethostname(2).
    pub no_host_name: bool,
}

/// How long a probe may take; a busy host must not make something look forbidden.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);

/// Steps without which no container is started.
const REQUIRED_STEPS: &str = "user,mount,ipc,uts,cgroup,pid,tmpfs";

impl Restrictions {
    /// Those of the container around this process; none outside a container. They are tried once.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsupported`] where the container around allows no containers at all, with what to change.
    pub fn find() -> Result<Self> {
        static FOUND: OnceLock<Result<Restrictions>> = OnceLock::new();
        FOUND
            .get_or_init(|| if is_confined() { Self::probe(&run_probe) } else { Ok(Self::default()) })
            .clone()
    }

    /// Tries all; `run` returns the output of steps, or which one failed and why.
    fn probe(run: &dyn Fn(&str) -> std::result::Result<(), String>) -> Result<Self> {
        run(REQUIRED_STEPS).map_err(|why| refusal(Engine::around(), &why))?;
        Ok(Self {
            no_proc: run("user,mount,pid,proc").is_err(),
            no_sysfs: run("user,mount,net,sysfs").is_err(),
            no_host_name: run("user,uts,host-name").is_err(),
        })
    }

    /// A note for the user on what containers lack because of the engine, which is determined only then; `None` if they
    /// lack nothing.
    pub fn note(&self, engine: impl FnOnce() -> Option<Engine>) -> Option<String> {
        let what = match (self.no_proc, self.no_host_name) {
            (true, true) => "`/proc` and the host name are those of",
            (true, false) => "`/proc` is that of",
            (false, true) => "the host name is that of",
            (false, false) => return None,
        };
        let engine = engine();
        let around = engine.map_or("the container around jobc", Engine::phrase);
        let fix = engine.unwrap_or(Engine::Other).unmask(self.no_host_name);
        Some(format!("{what} {around}, which allows no other; {fix} changes that"))
    }
}

/// Whether this process is restricted by a seccomp filter, an AppArmor profile, or masks over /proc.
fn is_confined() -> bool {
    let read = |path: &str| kernel_file::text(path).unwrap_or_default();
    needs_user_namespace()
        && (ProcessStatus::of_this_process().is_ok_and(|status| status.has_filter)
            || read("/proc/self/attr/current").trim_end().ends_with("(enforce)")
            || has_masks(&read("/proc/self/mountinfo")))
}

/// Directories of /proc that exist only as mount points: the kernel does not count mounts on them as hiding anything.
const EMPTY_MOUNT_POINTS: [&str; 3] = ["/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd", "/proc/openprom"];

/// Whether anything is mounted below /proc (proc_pid_mountinfo(5)).
fn has_masks(table: &str) -> bool {
    let places = table.lines().filter_map(|line| line.split(' ').nth(4));
    places.into_iter().any(|place| place.starts_with("/proc/") && !EMPTY_MOUNT_POINTS.contains(&place))
}

fn run_probe(steps: &str) -> std::result::Result<(), String> {
    match run_with_timeout::run(probe::command().arg(steps).env_clear(), PROBE_TIMEOUT) {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(output.text.trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Why no container can be started here, from the step that failed and its reason.
fn refusal(engine: Option<Engine>, why: &str) -> Error {
    let (step, reason) = why.split_once(": ").unwrap_or(("", why));
    let around = engine.map_or("the container around jobc", Engine::phrase);
    let what = match step {
        "user" => "user namespaces".to_owned(),
        "tmpfs" => "mounts".to_owned(),
        "mount" | "ipc" | "uts" | "cgroup" | "pid" => format!("{step} namespaces"),
        _ => "containers inside it".to_owned(),
    };
    let message =
        format!("{around} does not allow {what}, without which no container can be started: {reason}");
    let engine = engine.unwrap_or(Engine::Other);
    // Only root cannot even map itself.
    let help = if reason.starts_with("/proc/self/uid_map") { engine.allow_root() } else { engine.allow() };
    Error::new(Kind::Unsupported, message).help(help)
}

#[cfg(test)]
mod tests;
