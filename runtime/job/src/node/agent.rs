//! What runs a task on its node: it starts the program when the supervisor says so, passes signals on, and reports.
//!
//! The supervisor writes lines to its standard input, through `srun`: `go`, `stop SIGNAL`, `signal SIGNAL`. The agent
//! writes to its standard output, which the program shares, lines that begin with [`MARK`]. When its input ends, the
//! supervisor is gone, and the program with it.
//!
//! Slurm sends signals of its own: with `proctrack/cgroup` to the agent alone, which passes them on, otherwise to the
//! program, too. At the end of a job the supervisor gets SIGTERM as well as each task. Of both the program sees one.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};

use crate::program::ProgramProcesses;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::pid_namespace;
use jobc_sys::readable;
use jobc_sys::signals::{Signal, Signals, with_none_blocked};
use jobc_sys::syscall::ended::{self, EndedUsage};

/// The hidden command: `jobc step-task [--ready] [--rank] PROCTRACK SCRIPT ADDRESSES`.
pub const COMMAND: &str = "step-task";

/// What begins the agent's own lines.
pub(crate) const MARK: &str = "\u{1e}jobc ";

/// How long a signal of Slurm may come after that of the supervisor, or before it, and be the same one.
const SAME_SIGNAL: Duration = Duration::from_secs(30);
/// How long the supervisor's waits for Slurm's.
const SLURM_DELAY: Duration = Duration::from_millis(250);

/// Runs a task.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut words: Vec<OsString> = words.collect();
    let mut take =
        |option: &str| words.first().is_some_and(|word| word == option).then(|| words.remove(0)).is_some();
    let (checks, is_rank) = (take("--ready"), take("--rank"));
    let run = || match &words[..] {
        [proctrack, script, addresses] => {
            let script = [script.clone(), addresses.clone()];
            Agent::new(script, proctrack == "cgroup", checks)?.run()
        }
        _ => Err(Error::new(Kind::State, "this command is internal: only `jobc node` starts it")),
    };
    match run() {
        // A rank that fails ends the others, by `srun`.
        Ok(code) => ExitCode::from(if is_rank { code } else { 0 }),
        Err(error) => {
            eprintln!("jobc: {error}");
            ExitCode::from(125)
        }
    }
}

struct Agent {
    script: [OsString; 2],
    /// Whether Slurm's signals reach this process alone.
    passes_on: bool,
    checks: bool,
    signals: Signals,
    program: Option<Child>,
    probe: Option<Child>,
    /// When Slurm sent SIGTERM.
    told_by_slurm: Option<Instant>,
    /// When the supervisor's was passed on.
    told: Option<Instant>,
    /// A request of the supervisor that waits for the same one of Slurm.
    due: Option<(Instant, Signal)>,
    line: Vec<u8>,
}

impl Agent {
    fn new(script: [OsString; 2], passes_on: bool, checks: bool) -> Result<Self> {
        let signals = Signals::block_forwarded_and_continue()?;
        Ok(Self {
            script,
            passes_on,
            checks,
            signals,
            program: None,
            probe: None,
            told_by_slurm: None,
            told: None,
            due: None,
            line: Vec::new(),
        })
    }

    /// Runs the program to its end; returns its exit code.
    fn run(mut self) -> Result<u8> {
        let node = std::env::var("SLURMD_NODENAME").unwrap_or_default();
        report(&format!("here {node}"));
        loop {
            let (program, probe) = (descriptor(self.program.as_ref())?, descriptor(self.probe.as_ref())?);
            let ready = wait(&self, program.as_ref(), probe.as_ref())?;
            if ready[1] {
                while let Some(signal) = self.signals.next() {
                    self.take_from_slurm(signal)?;
                }
            }
            if ready[0] && !self.take_request()? {
                self.kill();
                return Ok(0);
            }
            if let Some((at, signal)) = self.due
                && at <= Instant::now()
            {
                self.due = None;
                self.told = Some(at);
                self.stop(signal)?;
            }
            if let Some(probe) = &mut self.probe
                && let Ok(Some(status)) = probe.try_wait()
            {
                self.probe = None;
                report(if status.success() { "ready" } else { "not-ready" });
            }
            let used = program.as_ref().and_then(|program| ended::usage(program.as_fd()).ok().flatten());
            if let Some(program) = &mut self.program
                && let Ok(Some(status)) = program.try_wait()
            {
                if let Some(probe) = &mut self.probe {
                    let _ = probe.kill();
                }
                kill_below(std::process::id());
                let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255);
                remove_scratch();
                let EndedUsage { cpu_usec, largest_resident_bytes, read_bytes, written_bytes } =
                    used.unwrap_or_default();
                let used = format!("{cpu_usec} {largest_resident_bytes} {read_bytes} {written_bytes}");
                report(&format!("ended {code} {} {node} {used}", status.signal().unwrap_or(0)));
                return Ok(u8::try_from(code).unwrap_or(u8::MAX));
            }
        }
    }

    /// Reads what the supervisor asks for; false at the end.
    fn take_request(&mut self) -> Result<bool> {
        let mut bytes = [0; 256];
        match std::io::stdin().lock().read(&mut bytes) {
            Ok(0) => return Ok(false),
            Ok(count) => self.line.extend(&bytes[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(false),
        }
        while let Some(end) = self.line.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line);
            let mut words = text.split_whitespace();
            let (word, number) = (words.next(), words.next().and_then(|number| number.parse().ok()));
            match (word, number.and_then(Signal::by_number)) {
                (Some("go"), _) if self.program.is_none() => self.start()?,
                (Some("stop"), Some(signal)) => {
                    let is_told = self.told_by_slurm.is_some_and(|at| at.elapsed() < SAME_SIGNAL);
                    if !is_told {
                        self.due = Some((Instant::now() + SLURM_DELAY, signal));
                    }
                }
                (Some("signal"), Some(signal)) => self.send(signal)?,
                _ => {}
            }
        }
        Ok(true)
    }

    fn start(&mut self) -> Result<()> {
        let start = |is_probe: bool| {
            let mut command = Command::new("bash");
            command.args(&self.script).stdin(Stdio::null());
            if is_probe {
                command.env("jobc_ready", "yes").stdout(Stdio::null()).stderr(Stdio::null());
            }
            with_none_blocked(|| command.spawn())?
                .map_err(|error| Error::new(Kind::System, format!("cannot start bash: {error}")))
        };
        let program = start(false)?;
        let node = std::env::var("SLURMD_NODENAME").unwrap_or_default();
        report(&format!("started {} {node}", program.id()));
        if self.checks {
            self.probe = Some(start(true)?);
        }
        self.program = Some(program);
        Ok(())
    }

    /// A signal that did not come from the supervisor.
    fn take_from_slurm(&mut self, signal: Signal) -> Result<()> {
        let mut is_new = true;
        if signal == Signal::TERM {
            is_new = self.told.is_none_or(|at| at.elapsed() >= SAME_SIGNAL);
            self.told_by_slurm = Some(Instant::now());
            self.due = None;
        }
        if !self.passes_on || !is_new {
            return Ok(());
        }
        if signal == Signal::TERM { self.stop(signal) } else { self.send(signal) }
    }

    /// Asks the program to end. Python has a handler for SIGINT alone.
    fn stop(&self, signal: Signal) -> Result<()> {
        // A shell may start another program and end before it, which then belongs to this process.
        let _ = set_child_subreaper(Some(getpid()));
        let Some(program) = self.processes() else { return Ok(()) };
        // A shell with a trap for it, or a program whose own processes have no handler, decides what these get.
        if !matches!(signal, Signal::TERM | Signal::KILL) && program.handles(signal) {
            return signal.send_to(program.pid);
        }
        if !program.others.is_empty() && is_outlived(program.pid) {
            return program.send_below(signal);
        }
        let other = signal != Signal::KILL && !program.handles(signal) && program.handles(Signal::INT);
        program.send_to_all(if other { Signal::INT } else { signal })
    }

    fn send(&self, signal: Signal) -> Result<()> {
        self.processes().map_or(Ok(()), |program| program.send_to_all(signal))
    }

    fn processes(&self) -> Option<ProgramProcesses> {
        let pid = self.program.as_ref()?.id();
        Some(ProgramProcesses { pid, others: pid_namespace::descendants(pid).unwrap_or_default() })
    }

    /// Ends everything that it has started.
    fn kill(&self) {
        for child in self.program.iter().chain(&self.probe) {
            kill_below(child.id());
            let _ = Signal::KILL.send_to(child.id());
        }
    }
}

/// Ends what a process has started.
fn kill_below(pid: u32) {
    for member in pid_namespace::descendants(pid).unwrap_or_default() {
        let _ = Signal::KILL.send_to(member.pid);
    }
}

/// Whether a program is a shell that lives through SIGTERM to wait for its own program, because Slurm sends it to both.
fn is_outlived(pid: u32) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|pair| pair == b"jobc_trap=:")
}

/// Waits for a request, a signal, an end, or until something is due; whether there are requests and signals.
fn wait(agent: &Agent, program: Option<&OwnedFd>, probe: Option<&OwnedFd>) -> Result<[bool; 2]> {
    let stdin = std::io::stdin();
    let fixed: [BorrowedFd<'_>; 2] = [stdin.as_fd(), agent.signals.as_fd()];
    let others = program.into_iter().chain(probe).map(OwnedFd::as_fd);
    let all: Vec<BorrowedFd<'_>> = fixed.into_iter().chain(others).collect();
    let left = agent.due.map(|(at, _)| at.saturating_duration_since(Instant::now()));
    let ready = readable::wait(&all, left).map_err(|errno| Error::system("wait for the task", errno))?;
    Ok([ready[0], ready[1]])
}

/// Readable once a process has ended.
fn descriptor(child: Option<&Child>) -> Result<Option<OwnedFd>> {
    let Some(child) = child else { return Ok(None) };
    pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .map(Some)
        .map_err(|errno| Error::system("wait for the task", errno))
}

/// Says something to the supervisor, in one write, so that it is never within a line of the program's.
fn report(words: &str) {
    let line = format!("{MARK}{words}\n");
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

/// Removes the directory of this instance on the node, if the role has one.
fn remove_scratch() {
    let variable = |name| std::env::var(name).ok();
    let parent = variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    if let (Some(job), Some(task)) = (variable("SLURM_JOB_ID"), variable("jobc_task")) {
        let _ = std::fs::remove_dir_all(parent.join(format!("jobc-{job}-{task}")));
    }
}
