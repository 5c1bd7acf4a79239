//! Tasks as steps of a Slurm job: each attempt is one `srun`, which starts an [agent](crate::node::agent) on the node.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use jobc_schema::plan::JobPlan;
use jobc_schema::preemption::{ATTEMPT, RESUME};
use jobc_schema::steps::StepsPlan;
use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::frames::Frames;
use super::message::PendingTask;
use super::spawner::TaskSpawner;
use super::task_process::{TaskProcess, TaskReport};
use crate::lifecycle::{EndSignal, TaskNumber};
use crate::node::LOST;
use crate::node::allocation::Allocation;
use crate::node::run::RunDirectory;
use jobc_container::container::Container;
use jobc_container::process::Exit;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;
use jobc_sys::signals::{Signal, with_none_blocked};
use jobc_sys::syscall::ended::EndedUsage;

/// How many steps are created at once: each waits for its node, and one that waits for another keeps no third back.
const MAX_THREADS: usize = 256;

/// Starts steps.
#[derive(Debug)]
pub(super) struct StepSpawner {
    pub(super) steps: StepsPlan,
    pub(super) allocation: Allocation,
    pub(super) run: Arc<RunDirectory>,
    /// The file that the scripts of roles read.
    pub(super) addresses: PathBuf,
    /// The signals that ask tasks to end, by role.
    pub(super) stop_signals: BTreeMap<String, Signal>,
    /// How many tasks there are.
    pub(super) tasks: usize,
    /// Whether tasks are told which attempt they are.
    pub(super) tells_attempt: bool,
}

impl StepSpawner {
    /// The variables of an attempt, over all starts of the Slurm job.
    fn variables_of(&self, attempt: u32) -> Vec<(&'static str, String)> {
        let resume = if attempt > 1 { "1" } else { "" };
        let variables = vec![(ATTEMPT, attempt.to_string()), (RESUME, resume.to_owned())];
        if self.tells_attempt { variables } else { vec![] }
    }

    /// The stop signals of a job's roles.
    pub(super) fn stop_signals(job: &JobPlan) -> BTreeMap<String, Signal> {
        let signal = |text: &Option<String>| {
            text.as_deref().and_then(|text| Signal::parse(text).ok()).unwrap_or(Signal::TERM)
        };
        job.roles.iter().map(|role| (role.name.clone(), signal(&role.stop_signal))).collect()
    }
}

impl TaskSpawner for StepSpawner {
    fn create(
        &self,
        _task: TaskNumber,
        id: &TaskId,
        attempt: u32,
        _memory_bytes: Option<u64>,
    ) -> Result<PendingTask> {
        let unknown = || Error::new(Kind::State, format!("the batch script has no step for `{id}`"));
        let role = self.steps.roles.iter().find(|role| role.role == id.role).ok_or_else(unknown)?;
        let node = self.allocation.hosts[&id.role].get(id.index as usize).ok_or_else(unknown)?;
        let number = self.run.earlier(id) + attempt;
        let mut command = Command::new("bash");
        command
            .args(["-c", &format!(". \"$1\"\nexec {}", role.step), "jobc"])
            .arg(&self.addresses)
            .env("jobc_index", id.index.to_string())
            .env("jobc_host", node)
            .env("jobc_task", id.to_string())
            .env("jobc_addresses", &self.addresses)
            .env("jobc_log", if number > 1 { format!(".{number}.log") } else { ".log".to_owned() })
            .envs(self.variables_of(number))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let failed = |error: &std::io::Error| Error::new(Kind::System, format!("cannot start srun: {error}"));
        let mut child = with_none_blocked(|| command.spawn())?.map_err(|error| failed(&error))?;
        let (Some(input), Some(mut out), Some(error)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(unknown());
        };
        let Some(there) = first_line(&mut out) else {
            let said = std::io::read_to_string(error).unwrap_or_default();
            let _ = child.wait();
            return Err(not_begun(&said));
        };
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())
            .map_err(|errno| Error::system("wait for a step", errno))?;
        let (out, error) = (OwnedFd::from(out), OwnedFd::from(error));
        for stream in [&out, &error] {
            rustix::fs::fcntl_setfl(stream, OFlags::NONBLOCK)
                .map_err(|errno| Error::system("read the output of a step", errno))?;
        }
        let node = there.split_whitespace().nth(2).map_or_else(|| node.clone(), str::to_owned);
        let process = StepProcess {
            child,
            pidfd,
            input: Some(input),
            stop_signal: self.stop_signals.get(&id.role).copied().unwrap_or(Signal::TERM),
            is_released: false,
            is_killed: false,
            ranks: if role.ranks { self.allocation.hosts[&id.role].clone() } else { vec![] },
            ready: 0,
            frames: Frames::default(),
            reports: Vec::new(),
            exit: None,
            note: None,
            used: None,
        };
        Ok(PendingTask {
            process: Box::new(process),
            output: Some([out, error]),
            notes: vec![],
            unenforced: vec![],
            mounts: None,
            node: Some(node),
            earlier: self.run.earlier(id),
        })
    }

    fn threads(&self) -> usize {
        self.tasks.clamp(1, MAX_THREADS)
    }
}

/// What the agent says first; nothing if the step ends before.
fn first_line(out: &mut impl std::io::Read) -> Option<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match out.read(&mut byte) {
            Ok(1) if byte[0] == b'\n' => return Some(String::from_utf8_lossy(&line).into_owned()),
            Ok(1) => line.push(byte[0]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return None,
        }
    }
}

/// Why a step did not begin, by the words of `srun`.
fn not_begun(said: &str) -> Error {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("srun ended");
    let message = format!("the step did not begin: {}", line.trim_start_matches("srun: error: "));
    Error::new(Kind::System, message)
}

/// A step.
#[derive(Debug)]
struct StepProcess {
    /// `srun`.
    child: Child,
    pidfd: OwnedFd,
    /// The input of the agent.
    input: Option<ChildStdin>,
    /// The signal that asks the program to end.
    stop_signal: Signal,
    is_released: bool,
    /// The step was killed by this process.
    is_killed: bool,
    /// The nodes of the ranks, if it has several.
    ranks: Vec<String>,
    /// How many of them are ready.
    ready: usize,
    frames: Frames,
    reports: Vec<TaskReport>,
    /// How the program ended, by the agent.
    exit: Option<Exit>,
    /// What Slurm says of its end: that a node failed, or that its memory was used up.
    note: Option<&'static str>,
    /// What its program has used on the node, by the agent.
    used: Option<EndedUsage>,
}

impl StepProcess {
    /// Asks the agent for something. One that is gone has ended.
    fn ask(&mut self, words: &str) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(format!("{words}\n").as_bytes());
        }
    }

    /// Ends the step: at SIGTERM `srun` kills its task.
    fn kill(&mut self) -> Result<()> {
        self.is_killed = true;
        Signal::TERM.send(&self.pidfd).map(drop)
    }

    /// Takes the lines of `srun` and Slurm out of the standard error, which are about the step, not of its program.
    fn without_slurm(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (of_slurm, own): (Vec<&[u8]>, Vec<&[u8]>) = bytes
            .split_inclusive(|&byte| byte == b'\n')
            .partition(|line| line.starts_with(b"srun: ") || line.starts_with(b"slurmstepd"));
        for line in of_slurm {
            let text = String::from_utf8_lossy(line);
            let says = |known: &str| text.contains(known);
            if ["oom_kill event", "oom-kill event", "Out Of Memory"].into_iter().any(says) {
                self.note = Some("out of memory: the limit of the step");
            } else if says("Node failure on ") {
                self.note.get_or_insert("NODE_FAIL");
            }
            eprint!("{text}");
        }
        own.concat()
    }
}

impl TaskProcess for StepProcess {
    fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn release(&mut self) {
        self.is_released = true;
        self.ask("go");
    }

    fn end(&mut self, signal: EndSignal) -> Result<()> {
        match signal {
            EndSignal::Interrupt | EndSignal::Stop if self.is_released => {
                let number = self.stop_signal.number();
                self.ask(&format!("stop {number}"));
                Ok(())
            }
            EndSignal::Interrupt | EndSignal::Stop | EndSignal::Kill => self.kill(),
        }
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        if signal == Signal::KILL || !self.is_released {
            return self.kill();
        }
        self.ask(&format!("signal {}", signal.number()));
        Ok(())
    }

    fn own_output<'a>(&mut self, stream: usize, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if stream != 0 {
            return Cow::Owned(self.without_slurm(bytes));
        }
        let Self { frames, reports, exit, ranks, ready, used, .. } = self;
        let rank = |node: Option<&str>| {
            let index = ranks.iter().position(|rank| Some(rank.as_str()) == node)?;
            Some((u32::try_from(index).ok()?, node?.to_owned()))
        };
        Cow::Owned(frames.split(bytes, &mut |line| {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("started"), pid) => {
                    let pid = pid.and_then(|pid| pid.parse().ok()).unwrap_or_default();
                    reports.push(match rank(words.next()) {
                        Some((rank, node)) => TaskReport::RankStarted { rank, node, pid },
                        None => TaskReport::Started { pid },
                    });
                }
                (Some("ready"), _) => {
                    *ready += 1;
                    if *ready >= ranks.len() {
                        reports.push(TaskReport::Ready);
                    }
                }
                (Some("not-ready"), _) => reports.push(TaskReport::NotReady),
                (Some("ended"), code) => {
                    let end = code.and_then(|code| end_of(code, words.next()));
                    let node = words.next();
                    add_usage(used, words);
                    if let (Some(end), Some((rank, _))) = (end, rank(node)) {
                        reports.push(TaskReport::RankEnded { rank, code: end.code() });
                    }
                    // That of the first rank that fails, which ends the others.
                    if exit.is_none_or(|exit| exit == Exit::Code(0)) {
                        *exit = end;
                    }
                }
                _ => {}
            }
        }))
    }

    fn take_reports(&mut self) -> Vec<TaskReport> {
        std::mem::take(&mut self.reports)
    }

    fn ended_usage(&self) -> Option<EndedUsage> {
        self.used
    }

    fn end_note(&self) -> Option<String> {
        self.note.map(str::to_owned)
    }

    fn reap(mut self: Box<Self>) -> Result<(Exit, Option<Box<Container>>)> {
        self.input = None;
        let status = self
            .child
            .wait()
            .map_err(|error| Error::new(Kind::System, format!("cannot wait for srun: {error}")))?;
        let of_srun = match status.signal() {
            _ if self.is_killed => Exit::Signal(Signal::KILL.number()),
            Some(signal) => Exit::Signal(signal),
            // The step was lost before its program had ended.
            None => Exit::Code(lost(status.code())),
        };
        Ok((self.exit.unwrap_or(of_srun), None))
    }

    fn into_container(self: Box<Self>) -> Option<Box<Container>> {
        None
    }
}

/// The exit code of a step that ended without a word of its agent: that of the signal that killed it, or [`LOST`].
fn lost(code: Option<i32>) -> u8 {
    code.and_then(|code| u8::try_from(code).ok()).filter(|&code| code > 128).unwrap_or(LOST)
}

/// The end that an agent reports.
fn end_of(code: &str, signal: Option<&str>) -> Option<Exit> {
    match signal.and_then(|signal| signal.parse().ok()) {
        Some(signal) if signal > 0 => Some(Exit::Signal(signal)),
        _ => code.parse().ok().map(Exit::Code),
    }
}

/// Adds what a program or a rank has used: microseconds, then bytes of memory, read and written.
fn add_usage<'a>(used: &mut Option<EndedUsage>, words: impl Iterator<Item = &'a str>) {
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let [cpu, memory, read, written] = numbers[..] else { return };
    let used = used.get_or_insert_default();
    used.cpu_usec += cpu;
    used.largest_resident_bytes = used.largest_resident_bytes.max(memory);
    used.read_bytes += read;
    used.written_bytes += written;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_a_code_or_a_signal() {
        assert_eq!(end_of("3", Some("0")), Some(Exit::Code(3)));
        assert_eq!(end_of("137", Some("9")), Some(Exit::Signal(9)));
        assert_eq!(end_of("", None), None);
        assert_eq!((lost(Some(1)), lost(Some(137)), lost(None)), (LOST, 137, LOST));
    }

    #[test]
    fn usage_is_that_of_the_program_on_its_node() {
        let mut used = None;
        for line in ["5 100 1 2", "7 50 1 0", "", "x"] {
            add_usage(&mut used, line.split(' '));
        }
        let sum = EndedUsage { cpu_usec: 12, largest_resident_bytes: 100, read_bytes: 2, written_bytes: 2 };
        assert_eq!(used, Some(sum));
    }

    #[test]
    fn the_agent_speaks_first() {
        assert_eq!(first_line(&mut &b"\x1ejobc here n0\nmore"[..]).as_deref(), Some("\u{1e}jobc here n0"));
        assert_eq!(first_line(&mut &b"srun"[..]), None);
        let said = "\nsrun: error: Unable to create step for job 7: Invalid node name specified\n";
        let error = not_begun(said);
        assert_eq!(
            error.to_string(),
            "the step did not begin: Unable to create step for job 7: Invalid node name specified"
        );
    }
}
