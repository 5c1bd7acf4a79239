//! What is done beside a task on its node, as another step of its job.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::commands;
use super::fault::Fault;
use super::question::{COMMAND, Login, Question};
use crate::slurm::{hostlist, node};

/// How long a node may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The exit code when a command cannot run.
const NOT_STARTED: u8 = 125;

/// What a step of a job beside its tasks needs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct FindStep {
    pub(crate) job: String,
    pub(crate) node: String,
    pub(crate) program: NodeProgram,
}

/// The program that nodes run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum NodeProgram {
    /// This one, by the name of its file.
    Copied(String),
    /// One that the site has.
    At(String),
}

impl Question for FindStep {
    /// The id of the component of a heterogeneous job that a node is in, or that of the job, and the path of the program.
    type Answer = (String, String);

    fn answer(self, login: &Login) -> Result<(String, String), Fault> {
        Ok((component(&self.job, &self.node)?, self.program.path(login)?))
    }
}

impl NodeProgram {
    fn path(&self, login: &Login) -> Result<String, Fault> {
        let path = match self {
            Self::Copied(name) => login.directory.join("bin").join(name),
            Self::At(path) => commands::path(path),
        };
        let is_missing = matches!(self, Self::Copied(_)) && !path.exists();
        if is_missing { Err(Fault::NoProgram) } else { Ok(path.to_string_lossy().into_owned()) }
    }
}

fn component(job: &str, node: &str) -> Result<String, Fault> {
    let jobs = format!("--jobs={job}");
    let text = commands::ask(&["squeue", "--noheader", &jobs, "--format=%A %N"])?.text;
    let has_node = |line: &str| {
        let (id, nodes) = line.split_once(' ')?;
        hostlist::expand(nodes.trim()).iter().any(|name| name == node).then(|| id.to_owned())
    };
    Ok(text.lines().filter_map(has_node).next_back().unwrap_or_else(|| job.to_owned()))
}

/// The words of `srun` for a step beside the tasks of a job on some of its nodes.
pub(crate) fn srun(job: &str, nodes: &[&str], options: &[&str]) -> Vec<String> {
    let count = nodes.len();
    let fixed =
        ["srun", "--overlap", "--quiet", "--export=ALL", "--mem=0", "--chdir=/", "--ntasks-per-node=1"];
    let own = [
        format!("--jobid={job}"),
        format!("--nodes={count}"),
        format!("--ntasks={count}"),
        format!("--nodelist={}", nodes.join(",")),
    ];
    fixed.iter().chain(options).map(|word| (*word).to_owned()).chain(own).collect()
}

/// Measures running tasks on their nodes, by one step for each allocation.
#[derive(Deserialize, Serialize)]
pub(crate) struct Measure {
    pub(crate) program: NodeProgram,
    /// Each with its job, node, process and name.
    pub(crate) tasks: Vec<[String; 4]>,
}

impl Question for Measure {
    /// Lines of [`node::measure`].
    type Answer = Vec<String>;

    fn answer(self, login: &Login) -> Result<Vec<String>, Fault> {
        let program = self.program.path(login)?;
        let mut jobs = std::collections::BTreeMap::<String, Vec<&[String; 4]>>::new();
        for task in &self.tasks {
            jobs.entry(component(&task[0], &task[1])?).or_default().push(task);
        }
        let step = |job: &str, tasks: &[&[String; 4]]| {
            let mut nodes: Vec<&str> = tasks.iter().map(|task| task[1].as_str()).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let mut words = srun(job, &nodes, &["--input=none"]);
            words.extend([program.as_str(), COMMAND, "measure"].map(str::to_owned));
            words.extend(tasks.iter().flat_map(|task| task[1..].iter().cloned()));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            commands::run(commands::command(&words), None).map(|said| said.text).unwrap_or_default()
        };
        let texts: Vec<String> = std::thread::scope(|scope| {
            let steps: Vec<_> = jobs.iter().map(|(job, tasks)| scope.spawn(|| step(job, tasks))).collect();
            steps.into_iter().map(|step| step.join().unwrap_or_default()).collect()
        });
        Ok(texts.iter().flat_map(|text| text.lines()).map(str::to_owned).collect())
    }
}

/// `jobc on-cluster measure NODE PROCESS TASK...`: prints a line for each task of this node.
pub(super) fn measure(words: &[&str]) -> ExitCode {
    let here = std::env::var("SLURMD_NODENAME").unwrap_or_default();
    let tasks = words.chunks_exact(3).filter(|task| task[0] == here);
    let tasks: Vec<(&str, u32)> = tasks.filter_map(|task| Some((task[2], node::process(task[1])?))).collect();
    for line in node::measure(&tasks) {
        println!("{line}");
    }
    ExitCode::SUCCESS
}

/// `jobc on-cluster relay NODE PORT STEP...`: moves bytes between the standard streams and a port of a node. A program that
/// listens on loopback only, or behind a firewall, is reached by a step on its node.
pub(super) fn relay(node: &str, port: &str, step: &[&str]) -> ExitCode {
    let addresses = (node, port.parse().unwrap_or_default()).to_socket_addrs();
    let connected = addresses
        .into_iter()
        .flatten()
        .find_map(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok());
    match (connected, step) {
        (Some(socket), _) => carry(&socket),
        (None, []) => ExitCode::FAILURE,
        (None, step) => {
            let error = commands::command(step).exec();
            eprintln!("jobc: cannot execute `srun`: {error}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// Moves bytes until the other side has ended.
fn carry(socket: &TcpStream) -> ExitCode {
    let Ok(mut sender) = socket.try_clone() else { return ExitCode::FAILURE };
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut sender);
        let _ = sender.shutdown(Shutdown::Write);
    });
    let mut socket = socket;
    match output().and_then(|mut output| io::copy(&mut socket, &mut output)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Standard output without a buffer, so that bytes move on as they come.
fn output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// `jobc on-cluster exec PROCESS TASK CONTAINER TERMINAL COMMAND...`: runs a command in the environment and the directory of
/// a task, in its container if it has one.
pub(super) fn exec(process: &str, task: &str, container: &str, terminal: bool, words: &[&str]) -> ExitCode {
    let Some(pid) = node::process(process).filter(|pid| Path::new(&format!("/proc/{pid}")).exists()) else {
        eprintln!("jobc: the task has ended");
        return ExitCode::from(NOT_STARTED);
    };
    let mut command = beside(pid, process, task, container, terminal, words);
    if terminal {
        return failed(&command.exec());
    }
    // Unbuffered output of a step is a terminal, which programs would take for one.
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return failed(&error),
    };
    if let Some(mut words) = child.stdout.take() {
        let _ = output().and_then(|mut output| io::copy(&mut words, &mut output));
    }
    let code =
        child.wait().map(|status| status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255));
    ExitCode::from(code.ok().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

fn failed(error: &io::Error) -> ExitCode {
    eprintln!("jobc: cannot execute the command: {error}");
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

/// The command beside a task.
fn beside(pid: u32, process: &str, task: &str, container: &str, terminal: bool, words: &[&str]) -> Command {
    let environment = node::environment(pid);
    let directory = |pid: u32| PathBuf::from(format!("/proc/{pid}/cwd"));
    let mut command;
    match container {
        "jobc" => {
            // The name of a container ends with the process that started it, for several attempts of a task. Where Slurm
            // alone runs the tasks, that process becomes jobc itself.
            let is_direct = process.starts_with('@');
            let parent = if is_direct { pid } else { node::parent(pid).unwrap_or(pid) };
            let (_, own) = task.split_once('-').unwrap_or(("", task));
            let job = std::env::var("SLURM_JOB_ID").unwrap_or_default();
            let id = if is_direct { format!("{job}-{own}-{parent}") } else { format!("{task}-{parent}") };
            command = Command::new("/proc/self/exe");
            command.args(["oci", "exec"]);
            if terminal {
                command.arg("--tty");
            }
            command.arg(id).args(words);
        }
        "none" => {
            command = Command::new(words.first().copied().unwrap_or_default());
            command.args(words.get(1..).unwrap_or_default());
            if let Ok(directory) = std::fs::canonicalize(directory(pid)) {
                command.current_dir(directory);
            }
        }
        _ => {
            // Containers of unprivileged users have a user namespace of their own, which their user may enter. The program
            // that starts one stays outside.
            let inside = node::inside(pid);
            let wd: OsString = [OsString::from("--wd="), directory(inside).into()].into_iter().collect();
            command = Command::new("nsenter");
            command.args(["--preserve-credentials", "--user", "--mount", "--target", &inside.to_string()]);
            command.arg(wd).arg("--").args(words);
            command.envs(node::environment(inside));
            return command;
        }
    }
    command.envs(environment);
    command
}
