//! Commands in running tasks of this host.

use std::os::fd::OwnedFd;
use std::path::Path;

use jobc_container::container;
use jobc_container::container::wait::{SignalPolicy, wait};
use jobc_container::exec::{self, ProcessOverrides};
use jobc_container::options::Options;
use jobc_container::root::layers::Layers;
use jobc_container::secret::SecretEnvironment;
use jobc_container::state::Id;
use jobc_container::terminal::Relay;
use jobc_container::user;
use jobc_place::exec::{ExecRequest, ExecStreams};
use jobc_place::state::JobState;
use jobc_place::task::TaskStatus;
use jobc_schema::plan::JobPlan;
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::signals::Signals;
use rustix::fs::{Mode, OFlags};
use serde::de::DeserializeOwned;

use super::{detail, tasks};
use crate::directory::Directory;
use crate::record::Record;
use crate::secrets::Secrets;
use crate::submission::Submission;

/// Starts the program and waits until its end.
///
/// # Errors
///
/// The task does not run, or the program cannot be started. The process has threads: those cannot enter every namespace.
pub(super) fn exec(
    directory: &Directory,
    record: &Record,
    request: &ExecRequest,
    streams: ExecStreams<'_>,
) -> Result<u8> {
    let task = tasks::one(record, request.task.as_deref())?;
    let id = Id::new(container_of(directory, record, task)?)?;
    let store = directory.containers();
    let user = request.user.as_deref().map(|user| lookup_user(user, task)).transpose()?;
    let changes = ProcessOverrides {
        arguments: request.command.clone(),
        directory: request.directory.clone(),
        variables: request.env.clone(),
        user: user.as_ref().map(|user| (user.uid, Some(user.gid))),
        groups: user.map(|user| user.additional).unwrap_or_default(),
        terminal: request.terminal,
        ..ProcessOverrides::default()
    };
    store.read(&id)?;
    let (process, _) = changes.apply(&container::config(&store.directory(&id))?)?;
    let ExecStreams { stdin, stdout, stderr, signals, started } = streams;
    let mut options = Options::default();
    if !request.terminal {
        options.streams = Some([stdin.map_or_else(null, Ok)?, stdout, stderr]);
    }
    if request.secrets {
        options.secret_environment = secrets(directory, task)?;
    }
    let entered = exec::ExecRequest { process, options, ..exec::ExecRequest::default() };
    let own = if signals.is_none() { Some(Signals::block_forwarded()?) } else { None };
    let (process, terminal) = exec::exec(&store, &id, entered)?;
    let mut relay = terminal.map(Relay::new).transpose()?;
    if let Some(started) = started {
        started()?;
    }
    let Some(signals) = signals.or(own.as_ref()) else { return Ok(process.wait()?.code()) };
    Ok(wait(&process, signals, relay.as_mut(), SignalPolicy::Foreground)?.code())
}

/// The container of a task that runs.
fn container_of<'a>(directory: &Directory, record: &Record, task: &'a TaskStatus) -> Result<&'a str> {
    let name = task.container.as_deref().filter(|_| task.state.is_alive()).ok_or_else(|| {
        let message =
            format!("task `{}` of job `{}` is {}, not running", task.task, record.id, task.state.as_str());
        Error::new(Kind::State, message)
    })?;
    if record.state == JobState::Paused
        && let Some(turn) = detail::turn_of(directory, record)
    {
        return Err(Error::new(Kind::State, format!("job `{}` is frozen until its turn: {turn}", record.id))
            .help("run it again then"));
    }
    if record.state == JobState::Paused {
        let error = Error::new(Kind::State, format!("job `{}` is paused", record.id));
        return Err(error.help(format!("resume it with `jobc resume {}`", record.id)));
    }
    Ok(name)
}

/// The IDs of a user whose name is resolved by the files of the container.
fn lookup_user(name: &str, task: &TaskStatus) -> Result<user::Account> {
    let pid = task.process.map_or(0, |process| process.pid);
    let root = Layers::open(&[format!("/proc/{pid}/root").into()])
        .map_err(|errno| Error::system(format!("access the files of task `{}`", task.task), errno))?;
    user::lookup(&root, name)
}

/// The secret variables of a task's role, read again: the supervisor does not pass on its values.
fn secrets(directory: &Directory, task: &TaskStatus) -> Result<SecretEnvironment> {
    let submission: Submission = read(&directory.submission_file())?;
    let plan: JobPlan = read(&directory.plan_file())?;
    Secrets::variables(&plan, &task.task.role, &submission.directory)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read(path).at_path("read", path)?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::new(Kind::System, format!("cannot read `{}`: {error}", path.display())))
}

fn null() -> Result<OwnedFd> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::system("open `/dev/null`", errno))
}
