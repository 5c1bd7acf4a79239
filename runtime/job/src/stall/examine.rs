//! What is kept of tasks that make no progress: the state of their processes, Python's stacks, NCCL's report.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_schema::stall::StallSign;
use jobc_sys::error::{Error, Result};
use jobc_sys::id::TaskId;
use rustix::fs::{MemfdFlags, memfd_create};

use super::{debug_server, flight_recorder, ras, sockets};
use crate::lifecycle::TaskNumber;
use crate::network::in_namespace;
use crate::ready::run_with_output;

/// How many processes of a task are shown.
const MAX_PROCESSES: usize = 64;

/// How long Python's stacks of a process may take.
const STACKS_TIMEOUT: Duration = Duration::from_secs(5);

/// Where images have py-spy.
const PY_SPY: [&str; 5] = [
    "/usr/local/bin/py-spy",
    "/usr/bin/py-spy",
    "/opt/conda/bin/py-spy",
    "/opt/venv/bin/py-spy",
    "/root/.local/bin/py-spy",
];

/// Where the kernel holds a process that waits for a peer: a socket, or one of several descriptors.
const WAITS_FOR_PEER: [&str; 10] = [
    "sk_wait",
    "skb_wait",
    "wait_woken",
    "inet_csk_accept",
    "tcp_",
    "unix_stream",
    "poll_schedule",
    "ep_poll",
    "epoll_wait",
    "do_select",
];

/// The same by the numbers of system calls, where the kernel does not say where: `recvfrom`, `recvmsg`, `accept`,
/// `accept4`, `poll`, `ppoll`, `select`, `pselect6`, `epoll_wait`, `epoll_pwait`.
#[cfg(target_arch = "x86_64")]
const PEER_CALLS: [u32; 10] = [45, 47, 43, 288, 7, 271, 23, 270, 232, 281];
#[cfg(not(target_arch = "x86_64"))]
const PEER_CALLS: [u32; 7] = [207, 212, 202, 242, 73, 72, 22];

/// A task to look at.
#[derive(Debug)]
pub(crate) struct ExaminedTask {
    pub(crate) task: TaskNumber,
    pub(crate) id: TaskId,
    pub(crate) attempt: u32,
    /// Its processes, the first one first.
    pub(crate) processes: Vec<u32>,
    pub(crate) container: Option<Id>,
}

/// Tasks to look at, and why.
#[derive(Debug)]
pub(crate) struct ExamineRequest {
    /// Those that make no progress, with their signs; empty if only NCCL is asked.
    pub(crate) stalled: Vec<(TaskNumber, Vec<StallSign>)>,
    /// Those for which NCCL is asked.
    pub(crate) asking: Vec<TaskNumber>,
    pub(crate) tasks: Vec<ExaminedTask>,
    /// The process in whose network NCCL is asked.
    pub(crate) nccl: Option<u32>,
    /// Where dumps of PyTorch's flight recorder are kept.
    pub(crate) dumps: PathBuf,
}

impl ExamineRequest {
    /// Looks at them; it may take seconds.
    pub(crate) fn carry_out(&self, store: &Store) -> Examination {
        Examination {
            tasks: self.tasks.iter().map(|task| examine(store, task)).collect(),
            nccl: self.nccl.and_then(ask_nccl),
            debug_server: debug_server::ask(&self.tasks, &self.dumps),
            dumps: flight_recorder::keep(&self.tasks, &self.dumps),
        }
    }
}

/// What was found of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) task: TaskNumber,
    /// The strongest sign that it is the one that the others wait for.
    pub(crate) cause: Cause,
    /// How many of a hundred of its connections are not acknowledged: of the two ends of one, the task that reaches
    /// fewer others is the cause.
    pub(crate) cut_off: usize,
    /// All that is kept, as text.
    pub(crate) text: String,
}

/// What a task does, those first that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// A process of it was stopped by a signal.
    Stopped,
    /// What it sends over the network is not acknowledged.
    NotAcknowledged,
    /// A process of it waits for a device, a disk or a file system.
    WaitsForDevice,
    /// It waits for something else than a peer, or computes.
    Other,
    /// It waits for one of its own threads, which may wait for a peer.
    WaitsForThread,
    /// It waits for a peer.
    WaitsForPeer,
}

impl Cause {
    /// As text.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "a process of it was stopped by a signal",
            Self::NotAcknowledged => "what it sends over the network is not acknowledged",
            Self::WaitsForDevice => "a process of it waits for a disk, a file system or a device",
            Self::Other => "it does not wait for another task",
            Self::WaitsForThread => "it waits for another thread",
            Self::WaitsForPeer => "it waits for data or a connection",
        }
    }
}

/// What was found of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Examination {
    /// Of each task that was looked at.
    pub(crate) tasks: Vec<Findings>,
    /// NCCL's report, if its service listens; or why it was not asked.
    pub(crate) nccl: Option<std::result::Result<String, String>>,
    /// What PyTorch's debug servers say.
    pub(crate) debug_server: String,
    /// The dumps of PyTorch's flight recorder, a line each.
    pub(crate) dumps: Vec<String>,
}

impl Examination {
    /// Whether NCCL says that ranks have lost each other.
    pub(crate) fn nccl_has_trouble(&self) -> bool {
        self.nccl.as_ref().is_some_and(|report| report.as_ref().is_ok_and(|text| ras::has_trouble(text)))
    }
}

/// Asks NCCL in the network namespace of a process.
fn ask_nccl(pid: u32) -> Option<std::result::Result<String, String>> {
    in_network_of(pid, ras::ask)
        .map_err(|error| error.to_string())
        .and_then(|answer| answer.map_err(|error| error.to_string()))
        .transpose()
}

/// Does something in the network of a process.
pub(super) fn in_network_of<T: Send>(pid: u32, work: impl FnOnce() -> T + Send) -> Result<T> {
    if is_own_network(pid) { Ok(work()) } else { in_namespace(pid, work) }
}

fn is_own_network(pid: u32) -> bool {
    let inode = |path: &str| fs::metadata(path).ok().map(|status| status.ino());
    inode(&format!("/proc/{pid}/ns/net")) == inode("/proc/self/ns/net")
}

/// Bytes that processes have read and written by system calls, those of pages that they had to wait for, and those of
/// their network if it is theirs. What cannot be read is left out; `None` if nothing can.
pub(crate) fn bytes_of(processes: &[u32]) -> Option<u64> {
    let of_process = |pid: &u32| {
        let counters = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
        let value = |key: &str| {
            let line = counters.lines().find_map(|line| line.strip_prefix(key))?;
            line.trim().parse::<u64>().ok()
        };
        let faults = stat_field(*pid, 9).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        Some(value("rchar:")? + value("wchar:")? + faults.saturating_mul(4096))
    };
    let known: Vec<u64> = processes.iter().filter_map(of_process).collect();
    let network = processes.first().filter(|pid| !is_own_network(**pid)).and_then(|pid| network_bytes(*pid));
    (!known.is_empty() || network.is_some()).then(|| known.iter().sum::<u64>() + network.unwrap_or(0))
}

/// The bytes of all interfaces of a process' network but the loopback.
fn network_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
    let of_line = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        (name.trim() != "lo").then(|| numbers.first().unwrap_or(&0) + numbers.get(8).unwrap_or(&0))
    };
    Some(text.lines().filter_map(of_line).sum())
}

/// A field of /proc/PID/stat after the name of the program, counted from 0: the state is the first.
fn stat_field(pid: u32, number: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(number).map(str::to_owned)
}

/// Looks at a task.
fn examine(store: &Store, task: &ExaminedTask) -> Findings {
    let mut text = format!("== {}, attempt {}\n", task.id, task.attempt);
    let mut cause = Cause::WaitsForPeer;
    // The first process of a container may be its init, which waits for its child.
    let own = match &task.processes[..] {
        [first, others @ ..] if !others.is_empty() && is_init(*first) => others,
        all => all,
    };
    let mut is_known = false;
    for &pid in own.iter().take(MAX_PROCESSES) {
        if let Some(found) = process(pid, &mut text) {
            is_known = true;
            cause = cause.min(found);
        }
    }
    if own.len() > MAX_PROCESSES {
        let _ = writeln!(text, "and {} more processes", own.len() - MAX_PROCESSES);
    }
    let (mut stuck, mut others) = (0, 0);
    for connections in own.iter().take(MAX_PROCESSES).map(|pid| sockets::connections(*pid)) {
        if let Some(connection) = connections.stuck.first() {
            let _ = writeln!(text, "not acknowledged: {connection}");
            cause = cause.min(Cause::NotAcknowledged);
        }
        (stuck, others) = (stuck + connections.stuck.len(), others + connections.others);
    }
    let cut_off = stuck * 100 / (stuck + others).max(1);
    if let Some(container) = &task.container {
        python(store, container, own, &mut text);
    }
    Findings { task: task.task, cause: if is_known { cause } else { Cause::Other }, cut_off, text }
}

/// Whether a process is the init of this runtime, a program that is in no directory.
fn is_init(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path.to_string_lossy().starts_with("/memfd:"))
}

/// Shows a process; what it says of its task.
fn process(pid: u32, text: &mut String) -> Option<Cause> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let state = stat_field(pid, 0)?;
    let command = read("cmdline").replace('\0', " ");
    let command: String = command.trim().chars().filter(|c| !c.is_control()).take(120).collect();
    let (place, call) = (read("wchan"), read("syscall"));
    let place = if place.is_empty() || place == "0" { "" } else { place.trim() };
    let _ = writeln!(text, "process {pid}: {command}");
    let _ = write!(text, "  state {state}");
    if !place.is_empty() {
        let _ = write!(text, ", in {place}");
    }
    let call = call.split_whitespace().next().unwrap_or_default().to_owned();
    if !call.is_empty() {
        let _ = write!(text, ", system call {call}");
    }
    text.push('\n');
    for line in read("stack").lines() {
        let _ = writeln!(text, "  {line}");
    }
    Some(match state.as_str() {
        "T" | "t" => Cause::Stopped,
        "D" => Cause::WaitsForDevice,
        "Z" | "X" => return None,
        _ if WAITS_FOR_PEER.iter().any(|known| place.contains(known)) => Cause::WaitsForPeer,
        _ if place.contains("futex") => Cause::WaitsForThread,
        _ if place.is_empty() && call.parse().is_ok_and(|call| PEER_CALLS.contains(&call)) => {
            Cause::WaitsForPeer
        }
        _ => Cause::Other,
    })
}

/// Adds the Python stacks of a task's processes, if its image has py-spy.
fn python(store: &Store, container: &Id, processes: &[u32], text: &mut String) {
    let Some(first) = processes.first() else { return };
    let exists = |path: &str| Path::new(&format!("/proc/{first}/root{path}")).exists();
    let Some(program) = PY_SPY.into_iter().find(|path| exists(path)) else { return };
    for pid in processes.iter().take(MAX_PROCESSES) {
        let is_python =
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("python"));
        let Some(inside) = jobc_sys::pid_namespace::number(*pid).filter(|_| is_python) else { continue };
        let words = [program.to_owned(), "dump".to_owned(), "--pid".to_owned(), inside.to_string()];
        let _ = writeln!(text, "Python stacks of process {pid}:");
        match output_of(store, container, &words) {
            Ok(stacks) => text.push_str(&stacks),
            Err(error) => {
                let _ = writeln!(text, "  not read: {error}");
            }
        }
    }
}

/// Runs a command in a container; what it printed.
fn output_of(store: &Store, container: &Id, words: &[String]) -> Result<String> {
    let machine = |errno| Error::system("keep the output of a command", errno);
    let output = memfd_create("output", MemfdFlags::CLOEXEC).map_err(machine)?;
    run_with_output(store, container, words, STACKS_TIMEOUT, Some(&output))?;
    let mut text = vec![0; 64 << 10];
    let count = rustix::io::pread(&output, &mut text[..], 0).map_err(machine)?;
    text.truncate(count);
    Ok(String::from_utf8_lossy(&text).into_owned())
}
