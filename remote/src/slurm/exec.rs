//! Runs a command next to a task, as another step of its job on the same node.

use jobc_schema::target::SlurmContainer;
use jobc_sys::error::{Error, Kind, Result};

use super::access::Access;
use super::group::GroupState;
use super::login::plain_environment;
use super::record::GroupRecord;
use super::state::Run;
use super::tasks::{attempts, last_start};
use crate::host::{Host, Running, Streams};
use crate::place::{ExecRequest, ExecStreams};
use crate::user_side::{self, UserSide};

/// A task that runs.
pub(crate) struct RunningTask {
    /// Its name.
    pub(crate) task: String,
    /// Its role.
    role: String,
    /// The id of its Slurm job.
    pub(crate) job: String,
    /// The group that it belongs to.
    pub(crate) group: String,
    /// Its node.
    pub(crate) node: String,
    /// The process that runs it there, or its number in a step that Slurm alone runs: `@0`.
    pub(crate) process: String,
    /// Whether it runs in no container, whatever the target says.
    is_bare: bool,
}

/// All running tasks, in the order of their groups and roles.
pub(crate) fn all_running(run: &Run) -> Vec<RunningTask> {
    if run.state().is_final() {
        return vec![];
    }
    let groups = run.record.groups.iter();
    let tasks = groups.flat_map(|group| group.tasks().map(move |(role, index)| (group, role, index)));
    let running = |(group, role, index): (&GroupRecord, &str, u32)| {
        let task = format!("{role}-{index}");
        if group.direct {
            let state = run.groups().find(|(other, _)| other.name == group.name).map(|(_, state)| state);
            let (nodes, _, _) =
                last_start(&run.files, &group.name).filter(|_| state == Some(&GroupState::Running))?;
            return Some(RunningTask {
                job: run.files.jobs.get(&group.name)?.clone(),
                group: group.name.clone(),
                node: nodes.get(index as usize)?.clone(),
                process: format!("@{index}"),
                is_bare: group.bare,
                role: role.to_owned(),
                task,
            });
        }
        let events = run.files.tasks.get(&task)?;
        let last = attempts(events).pop().filter(|last| last.ended.is_none())?;
        Some(RunningTask {
            job: run.files.jobs.get(&group.name)?.clone(),
            group: group.name.clone(),
            node: last.node.to_owned(),
            process: last.pid.to_string(),
            is_bare: false,
            role: role.to_owned(),
            task,
        })
    };
    tasks.filter_map(running).collect()
}

/// The running task of a name, or the first one of the role; without a name the only one.
pub(crate) fn running(run: &Run, word: Option<&str>) -> Result<RunningTask> {
    let is_named = |task: &RunningTask| word.is_none_or(|word| word == task.task || word == task.role);
    let mut found: Vec<RunningTask> = all_running(run).into_iter().filter(is_named).collect();
    let name = &run.name;
    match (found.len(), word) {
        (0, Some(word)) => {
            let mut tasks = run.record.groups.iter().flat_map(GroupRecord::tasks);
            let is_known = tasks.any(|(role, index)| role == word || format!("{role}-{index}") == word);
            Err(if is_known {
                Error::new(Kind::State, format!("task `{word}` of job `{name}` does not run"))
            } else {
                Error::new(Kind::NotFound, format!("job `{name}` has no task `{word}`"))
            })
        }
        (0, None) => Err(Error::new(Kind::State, format!("no task of job `{name}` runs"))),
        (1, _) | (_, Some(_)) => Ok(found.remove(0)),
        (_, None) => {
            let names: Vec<String> = found.iter().map(|task| format!("`{}`", task.task)).collect();
            Err(Error::new(Kind::State, format!("several tasks of job `{name}` run"))
                .help(format!("name one: {}", names.join(", "))))
        }
    }
}

/// Starts a step as its user would outside of any allocation.
fn start(access: &Access, step: &[String], streams: Streams, terminal: bool) -> Result<Running> {
    let without: Vec<String> = match access.host {
        Host::Local => plain_environment().collect(),
        Host::Ssh(_) => vec![],
    };
    let mut words = vec!["env"];
    words.extend(without.iter().flat_map(|name| ["-u", name]));
    words.extend(step.iter().map(String::as_str));
    access.host.start(&words, streams, terminal)
}

/// Runs a command where Slurm's commands are; returns its exit code.
pub(crate) fn on_login(access: &Access, request: &ExecRequest, streams: ExecStreams<'_>) -> Result<u8> {
    let words: Vec<&str> = request.command.iter().map(String::as_str).collect();
    let streams = Streams::of_files(streams.stdin, streams.stdout, streams.stderr);
    let code = access.host.start(&words, streams, false)?.wait()?;
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Runs the command to its end; returns its exit code.
pub(crate) fn exec(
    access: &Access,
    run: &Run,
    request: &ExecRequest,
    mut streams: ExecStreams<'_>,
) -> Result<u8> {
    let container = access.settings.container;
    if container == SlurmContainer::Oci {
        let message = "Slurm has no way into the containers that it runs itself";
        return Err(Error::new(Kind::Unsupported, message).help("use `container: jobc`"));
    }
    let task = running(run, request.task.as_deref())?;
    let is_bare = task.is_bare && container == SlurmContainer::Jobc;
    let container = if is_bare { "none" } else { container.as_str() };
    let name = format!("{}-{}", task.job, task.task);
    let mut words = vec!["exec", &task.process, &name, container, if request.terminal { "tty" } else { "" }];
    let command = user_side::words(request)?;
    words.extend(command.iter().map(String::as_str));
    let mut options = vec!["--unbuffered"];
    options.extend(request.terminal.then_some("--pty"));
    options.extend((!request.terminal && streams.stdin.is_none()).then_some("--input=none"));
    let step = access.step(&task.job, &task.node, &options, &words)?;
    let command_streams = Streams::of_files(streams.stdin.take(), streams.stdout, streams.stderr);
    let user = UserSide::new(request, streams.signals);
    if let Some(started) = streams.started.take() {
        started()?;
    }
    user.wait_for(start(access, &step, command_streams, request.terminal)?)
}
