//! A job's network without a job: makes one, runs commands in its tasks, and ends.
//!
//! `network FOLDER PLAN.json [PORT:TASK:LABEL …]` makes the network of the plan's first job, with its state in the folder and
//! those ports published, and prints what was made. Then it reads a line of JSON at a time and answers with one:
//! `{"start": 0, "args": […]}` starts a container of a task, `{"run": 0, "args": […]}` waits for its end and returns its code
//! and what it wrote to /out, `{"exec": 0, "args": […]}` runs a further process in the one that was started, and
//! `{"connect": 0, "port": 80}` connects to a task as a probe does.

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jobc_runtime::allocate::Allocation;
use jobc_runtime::bundle::Bundle;
use jobc_runtime::config::Config;
use jobc_runtime::container::Options;
use jobc_runtime::container::make::{self, Made, Request, Then};
use jobc_runtime::job::submission::{Publish, Submission};
use jobc_runtime::job::{Folder, JobId, TaskId};
use jobc_runtime::network::{self, Network};
use jobc_runtime::state::Id;
use jobc_schema::plan::Plan;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let first = words.next().unwrap_or_default();
    if first == network::COMMAND {
        return network::hold(words);
    }
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    match drive(Path::new(&first), &words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{}", json!({"error": error.to_string(), "help": help(&*error)}));
            ExitCode::FAILURE
        }
    }
}

fn help<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a str> {
    error.downcast_ref::<jobc_runtime::Error>().and_then(|error| error.help.as_deref())
}

/// What is driven.
struct Job {
    network: Network,
    folder: Folder,
    tasks: Vec<TaskId>,
    running: Vec<(usize, Made)>,
    made: u32,
}

fn drive(state: &Path, words: &[String]) -> Result<()> {
    let (plan, ports) = words.split_first().ok_or("which plan?")?;
    let plan: Plan = serde_json::from_slice(&std::fs::read(plan)?)?;
    let plan = plan.jobs.first().ok_or("an empty plan")?;
    let tasks: Vec<TaskId> = plan
        .roles
        .iter()
        .flat_map(|role| (0..role.instances).map(|index| TaskId::new(&role.name, index)))
        .collect();
    let folder = Folder {
        id: JobId { name: plan.name.clone(), run: 1 },
        state: state.to_owned(),
        record: state.to_owned(),
    };
    let publish = ports
        .iter()
        .map(|word| parse(word).ok_or_else(|| format!("{word}?")))
        .collect::<std::result::Result<_, _>>()?;
    let submission = Submission { publish, ..Submission::default() };
    let began = Instant::now();
    let network = Network::make(plan, &tasks, &folder, &submission)?;
    let addresses: Vec<_> = (0..tasks.len()).map(|task| network.address(task)).collect();
    let ports: Vec<u16> = network.published().iter().map(|published| published.port).collect();
    let seconds = began.elapsed().as_secs_f64();
    print(&json!({"addresses": addresses, "notes": network.notes(), "ports": ports, "seconds": seconds}))?;
    let mut job = Job { network, folder, tasks, running: Vec::new(), made: 0 };
    for line in std::io::stdin().lock().lines() {
        let answer = job.answer(&serde_json::from_str(&line?)?);
        print(&answer.unwrap_or_else(|error| json!({"error": error.to_string(), "help": help(&*error)})))?;
    }
    let began = Instant::now();
    for (_, made) in job.running {
        made.container.delete(true)?;
    }
    drop(job.network);
    print(&json!({"seconds": began.elapsed().as_secs_f64()}))
}

fn parse(word: &str) -> Option<Publish> {
    let mut parts = word.split(':');
    let (port, task, label) = (parts.next()?, parts.next()?, parts.next()?);
    let address = std::net::Ipv4Addr::LOCALHOST.into();
    Some(Publish { address, port: port.parse().ok()?, task: task.parse().ok()?, label: label.to_owned() })
}

fn print(value: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}

impl Job {
    fn answer(&mut self, ask: &Value) -> Result<Value> {
        let number = |key: &str| ask[key].as_u64().and_then(|number| usize::try_from(number).ok());
        if let Some(task) = number("start") {
            let made = self.make(task, &ask["args"])?;
            self.running.push((task, made));
            return Ok(json!({}));
        }
        if let Some(task) = number("run") {
            let made = self.make(task, &ask["args"])?;
            let code = made.process.wait()?.code();
            made.container.delete(true)?;
            let out = std::fs::read_to_string(self.out(task).join("out")).unwrap_or_default();
            return Ok(json!({"code": code, "out": out}));
        }
        if let Some(task) = number("exec") {
            return self.exec(task, &ask["args"]);
        }
        let task = number("connect").ok_or("what?")?;
        let port = number("port").and_then(|port| u16::try_from(port).ok()).ok_or("which port?")?;
        let began = Instant::now();
        self.network.connect(task, port, Duration::from_secs(2))?;
        Ok(json!({"seconds": began.elapsed().as_secs_f64()}))
    }

    fn out(&self, task: usize) -> PathBuf {
        self.folder.state.join(format!("out-{}", self.tasks[task]))
    }

    fn make(&mut self, task: usize, args: &Value) -> Result<Made> {
        let name = self.tasks[task].to_string();
        self.made += 1;
        let written = self.folder.state.join(format!("written-{name}-{}", self.made));
        let (out, copied) = (self.out(task), written.join("copy"));
        for folder in [&out, &written, &copied] {
            std::fs::create_dir_all(folder)?;
        }
        let _ = std::fs::remove_file(out.join("out"));
        std::fs::write(written.join("config.json"), serde_json::to_vec(&configuration(&name, &out, args))?)?;
        let original = Bundle::open(&written)?;
        let id = Id::new(&format!("{}.{name}-{}", self.folder.id, self.made))?;
        let begun = make::begin(&self.folder.containers(), &id)?;
        let allocation = Allocation::of(&original, None, begun.folder(), true)?;
        let (text, _) = allocation.apply(&original)?;
        let mut spec = Config::read(&text)?.spec;
        self.network.attach(task, &mut spec)?;
        std::fs::write(copied.join("config.json"), serde_json::to_vec(&spec)?)?;
        let options = Options { allow_unenforced: true, without_cgroup: true, ..Options::default() };
        let request = Request { options, root: Some(allocation.root.clone()), ..Request::default() };
        Ok(begun.make(&Bundle::open(&copied)?, request, Then::Attend, None)?)
    }

    fn exec(&self, task: usize, args: &Value) -> Result<Value> {
        let (_, made) = self.running.iter().find(|(number, _)| *number == task).ok_or("it does not run")?;
        let id = Id::new(&made.container.record.id)?;
        let spec = jobc_runtime::container::config(&self.folder.containers().folder(&id))?;
        let arguments = serde_json::from_value(args.clone())?;
        let changes = jobc_runtime::exec::Changes { arguments, ..Default::default() };
        let request = jobc_runtime::exec::Request {
            process: changes.apply(&spec)?,
            options: Options { without_cgroup: true, ..Options::default() },
            console_socket: None,
            pid_file: None,
            detached: false,
            ignore_paused: false,
        };
        let (process, _) = jobc_runtime::exec::exec(&self.folder.containers(), &id, request)?;
        Ok(json!({"code": process.wait()?.code()}))
    }
}

/// A container on the machine's own files, whose program writes to /out/out.
fn configuration(name: &str, out: &Path, args: &Value) -> Value {
    let mount = |kind: &str, place: &str, options: &[&str]| json!({"type": kind, "source": kind, "destination": place, "options": options});
    let mut config = json!({
        "ociVersion": "1.1.0",
        "annotations": {"dev.jobc.image": "host"},
        "hostname": name,
        "root": {"path": "rootfs"},
        "process": {
            "args": ["/bin/sh", "-c", "exec \"$@\" >/out/out 2>&1", "sh"],
            "cwd": "/",
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            "user": {"uid": 0, "gid": 0},
            "noNewPrivileges": true,
        },
        "mounts": [
            mount("proc", "/proc", &["nosuid", "noexec", "nodev"]),
            mount("sysfs", "/sys", &["nosuid", "noexec", "nodev", "ro"]),
            mount("devpts", "/dev/pts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]),
            {"type": "bind", "source": out, "destination": "/out", "options": ["bind", "rw"]},
        ],
        "linux": {"namespaces": [
            {"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "cgroup"},
        ]},
    });
    let capabilities =
        ["CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETUID", "CAP_SETGID", "CAP_CHOWN", "CAP_KILL"];
    for set in ["bounding", "effective", "permitted"] {
        config["process"]["capabilities"][set] = json!(capabilities);
    }
    if let (Some(all), Some(args)) = (config["process"]["args"].as_array_mut(), args.as_array()) {
        all.extend(args.iter().cloned());
    }
    config
}
