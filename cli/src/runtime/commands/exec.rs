//! `jobc exec`: runs a command in a running task.

mod json_output;

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::ExitCode;

use jobc_container::cgroup::SubGroups;
use jobc_container::container;
use jobc_container::container::wait::{SignalPolicy, wait};
use jobc_container::exec::{self, ExecRequest, ProcessOverrides};
use jobc_container::options::Options;
use jobc_container::root::layers::Layers;
use jobc_container::secret::SecretEnvironment;
use jobc_container::state::Id;
use jobc_container::terminal::Relay;
use jobc_container::user;
use jobc_job::directory::Directory;
use jobc_job::record::{JobState, Record, TaskRecord};
use jobc_job::secrets::Secrets;
use jobc_job::submission::Submission;
use jobc_schema::plan::JobPlan;
use jobc_sys::error::{Error, Kind};
use jobc_sys::own_program::{Environment, ensure_read_only};
use jobc_sys::signals::Signals;
use rustix::fs::{Mode, OFlags};
use serde::de::DeserializeOwned;

use super::jobs::{Failure, Jobs, Result, tasks};
use super::newest;
use crate::args::FormatArg;
use crate::input::reason;
use crate::runtime::args::jobs::JobExecArgs;
use json_output::CommandOutput;

/// Starts the program and waits until its end; the exit code is that of the program, or 125 to 127 as with
/// `jobc run BUNDLE`.
pub(crate) fn run(args: &JobExecArgs) -> Result<ExitCode> {
    exec_in_task(args).map_err(Failure::with_program_code)
}

fn exec_in_task(args: &JobExecArgs) -> Result<ExitCode> {
    // Secrets may come from any environment variable, and the task has them all.
    ensure_read_only(if args.secrets { Environment::Whole } else { Environment::Minimal })?;
    let jobs = Jobs::open()?;
    let ((directory, record), words) = match &args.words[..] {
        words if is_after_dashes(words) => (newest::named_or_running(&jobs, None)?, words),
        [job, words @ ..] => (jobs.record(job)?, words),
        [] => return Err(Failure::usage_error(Error::new(Kind::State, "missing command"))),
    };
    if words.len() == args.words.len() {
        newest::show_choice(&record.id, &record);
    }
    let (task, command) = split_task_and_command(&record, words)?;
    let name = task.container.as_deref().filter(|_| task.state.is_alive()).ok_or_else(|| {
        let message =
            format!("task `{}` of job `{}` is {}, not running", task.task, record.id, task.state.as_str());
        Error::new(Kind::State, message)
    })?;
    if record.state == JobState::Paused {
        let error = Error::new(Kind::State, format!("job `{}` is paused", record.id));
        return Err(error.help(format!("resume it with `jobc resume {}`", record.id)).into());
    }
    let (store, id) = (directory.containers(), Id::new(name)?);
    let user = args.user.as_deref().map(|user| lookup_user(user, task)).transpose()?;
    let changes = ProcessOverrides {
        arguments: command.to_vec(),
        directory: args.workdir.clone(),
        variables: args.env.clone(),
        user: user.as_ref().map(|user| (user.uid, Some(user.gid))),
        groups: user.map(|user| user.additional).unwrap_or_default(),
        terminal: args.tty,
        ..ProcessOverrides::default()
    };
    store.read(&id)?;
    let (process, _) = changes.apply(&container::config(&store.directory(&id))?)?;
    // Input at a terminal is meant for the program.
    if !args.interactive && !args.tty {
        redirect_stdin_from_null()?;
    }
    let mut options = Options::default();
    if args.secrets {
        options.secret_environment = secrets(&directory, task)?;
    }
    let output = if args.lines.format == FormatArg::Json {
        let (ours, [output, errors]) = CommandOutput::new(&record.id, task)?;
        options.streams = Some([duplicate_stdin()?, output, errors]);
        Some(ours)
    } else {
        None
    };
    let request = ExecRequest {
        process,
        options,
        console_socket: None,
        pid_file: None,
        detached: false,
        ignore_paused: false,
        sub_groups: SubGroups::default(),
    };
    let signals = Signals::block_forwarded()?;
    let (process, terminal) = exec::exec(&store, &id, request)?;
    let mut relay = terminal.map(Relay::new).transpose()?;
    // Only now, because a process with threads cannot enter every namespace.
    let shown = output.map(CommandOutput::start_thread).transpose()?;
    let exit = wait(&process, &signals, relay.as_mut(), SignalPolicy::Foreground)?;
    if let Some(shown) = shown {
        shown.finish(exit.code());
    }
    Ok(ExitCode::from(exit.code()))
}

/// Whether all words are after the first `--`, so that no job is named: `jobc exec -it -- bash`.
fn is_after_dashes(words: &[String]) -> bool {
    let mut given = std::env::args_os().skip_while(|word| word != "--");
    given.next().is_some() && given.eq(words.iter().map(std::ffi::OsString::from))
}

/// The task and the command of `[TASK] [--] COMMAND`. The first word is a task if the job has a task of that name, or
/// if a `--` follows it.
fn split_task_and_command<'a>(
    record: &'a Record,
    words: &'a [String],
) -> Result<(&'a TaskRecord, &'a [String])> {
    let named = |word: &String| record.tasks.iter().find(|task| task.task.to_string() == *word);
    let (task, command) = match words {
        [dashes, command @ ..] if dashes == "--" => (None, command),
        [word, dashes, command @ ..] if dashes == "--" => {
            let all = tasks(record, std::slice::from_ref(word))?;
            let [task] = &all[..] else { return Err(several_tasks_error(record)) };
            (record.task(task), command)
        }
        [word, command @ ..] if named(word).is_some() => (named(word), command),
        command => (None, command),
    };
    let task = match (task, &record.tasks[..]) {
        (Some(task), _) | (None, [task]) => task,
        (None, tasks) => {
            let mut alive = tasks.iter().filter(|task| task.state.is_alive());
            match (alive.next(), alive.next()) {
                (Some(task), None) => task,
                _ => return Err(several_tasks_error(record)),
            }
        }
    };
    if command.is_empty() {
        let error = Error::new(Kind::State, "missing command");
        return Err(Failure::usage_error(
            error.help(format!("write it after the task: `jobc exec {} {} -- ls`", record.id, task.task)),
        ));
    }
    Ok((task, command))
}

fn several_tasks_error(record: &Record) -> Failure {
    let names: Vec<String> = record.tasks.iter().map(|task| task.task.to_string()).collect();
    let known = jobc_compiler::suggest::list(names.iter().map(String::as_str));
    let error = Error::new(Kind::State, format!("job `{}` has several tasks; name one", record.id));
    Failure::usage_error(error.help(format!("its tasks are {known}")))
}

/// The IDs of a user whose name is resolved by the files of the container.
fn lookup_user(name: &str, task: &TaskRecord) -> Result<user::Account> {
    let pid = task.process.map_or(0, |process| process.pid);
    let root = Layers::open(&[format!("/proc/{pid}/root").into()])
        .map_err(|errno| Error::system(format!("access the files of task `{}`", task.task), errno))?;
    Ok(user::lookup(&root, name)?)
}

/// The secret variables of a task's role, read again: the supervisor does not pass on its values.
fn secrets(directory: &Directory, task: &TaskRecord) -> Result<SecretEnvironment> {
    let submission: Submission = read(&directory.submission_file())?;
    let plan: JobPlan = read(&directory.plan_file())?;
    Ok(Secrets::variables(&plan, &task.task.role, &submission.directory)?)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let unreadable =
        |why: String| Error::new(Kind::System, format!("cannot read `{}`: {why}", path.display()));
    let text = std::fs::read(path).map_err(|error| unreadable(reason(&error)))?;
    Ok(serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?)
}

/// A duplicate of our stdin.
fn duplicate_stdin() -> Result<OwnedFd> {
    let own = rustix::stdio::stdin().as_fd().try_clone_to_owned();
    Ok(own.map_err(|error| Error::new(Kind::System, reason(&error)))?)
}

/// Replaces our stdin by /dev/null.
fn redirect_stdin_from_null() -> Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .and_then(rustix::stdio::dup2_stdin);
    Ok(null.map_err(|errno| Error::system("open `/dev/null`", errno))?)
}
