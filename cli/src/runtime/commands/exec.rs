//! `jobc exec`: runs a command in a running task, at any place.

mod json_output;

use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;

use jobc_place::exec::{ExecRequest, ExecStreams};
use jobc_place::job_ref::JobRef;
use jobc_place::task::TaskStatus;
use jobc_sys::error::{Error, Kind};
use jobc_sys::own_program::{Environment, ensure_read_only};
use jobc_sys::signals::Signals;
use rustix::stdio::{stderr, stdin, stdout};

use super::found::Places;
use super::jobs::{Failure, Result};
use super::newest;
use crate::args::FormatArg;
use crate::input::reason;
use crate::runtime::args::jobs::JobExecArgs;
use json_output::CommandOutput;

/// Starts the program and waits until its end; the exit code is that of the program, or 125 to 127 as with
/// `jobc run BUNDLE`.
pub(crate) fn run(args: &JobExecArgs) -> Result<ExitCode> {
    exec(args).map_err(Failure::with_program_code)
}

fn exec(args: &JobExecArgs) -> Result<ExitCode> {
    let (named, words) = match &args.words[..] {
        words if is_after_dashes(words) => (None, words),
        [job, words @ ..] => (Some(job.parse::<JobRef>().map_err(|error| usage(&error))?), words),
        [] => return Err(usage(&"missing command")),
    };
    if !matches!(named, Some(JobRef::Remote(_))) {
        // Secrets may come from any environment variable, and the task has them all.
        ensure_read_only(if args.secrets { Environment::Whole } else { Environment::Minimal })?;
    }
    let found = match &named {
        Some(job) => Places::default().find(job)?,
        None => newest::running()?,
    };
    let job = found.job()?;
    let id = found.id_of(job);
    if named.is_none() {
        newest::show_choice(&id, job.state.as_str());
    }
    let is_json = args.lines.format == FormatArg::Json;
    let is_unclear = words.first().is_some_and(|word| is_like_task(word));
    let tasks = if is_json || is_unclear { found.place.inspect(&job.name)?.tasks } else { vec![] };
    let (task, command) = split(words, &|word| tasks.iter().any(|task| task.task.to_string() == word));
    if command.is_empty() {
        let error = Error::new(Kind::State, "missing command");
        let help = format!("write it after the task: `jobc exec {id} {} -- ls`", task.unwrap_or("TASK"));
        return Err(Failure::usage_error(error.help(help)));
    }
    let request = ExecRequest {
        task: task.map(str::to_owned),
        command: command.to_vec(),
        terminal: args.tty,
        directory: args.workdir.clone(),
        env: args.env.clone(),
        user: args.user.clone(),
        secrets: args.secrets,
        needs_end_of_input: false,
    };
    let (mut stdout, mut stderr) = (duplicate(stdout().as_fd())?, duplicate(stderr().as_fd())?);
    let mut output = None;
    if is_json {
        let is_it = |known: &&TaskStatus| match task {
            Some(task) => known.task.to_string() == task || known.task.role == task,
            None => known.state.is_alive(),
        };
        let (ours, [its_stdout, its_stderr]) = CommandOutput::new(&id, tasks.iter().find(is_it))?;
        (stdout, stderr, output) = (its_stdout, its_stderr, Some(ours));
    }
    let signals = Signals::block_forwarded()?;
    let mut shown = None;
    let mut started = || {
        // Only now, because a process with threads cannot enter every namespace.
        shown = output.take().map(CommandOutput::start_thread).transpose()?;
        Ok(())
    };
    // Input at a terminal is meant for the program.
    let has_input = args.interactive || args.tty;
    let streams = ExecStreams {
        stdin: if has_input { Some(duplicate(stdin().as_fd())?) } else { None },
        stdout,
        stderr,
        signals: Some(&signals),
        started: Some(&mut started),
    };
    let code = found.place.exec(&job.name, &request, streams)?;
    if let Some(shown) = shown {
        shown.finish(code);
    }
    Ok(ExitCode::from(code))
}

fn usage(error: &dyn std::fmt::Display) -> Failure {
    Failure::usage_error(Error::new(Kind::State, error.to_string()))
}

/// Whether all words are after the first `--`, so that no job is named: `jobc exec -it -- bash`.
fn is_after_dashes(words: &[String]) -> bool {
    let mut given = std::env::args_os().skip_while(|word| word != "--");
    given.next().is_some() && given.eq(words.iter().map(std::ffi::OsString::from))
}

/// Whether a word is written like the name of a task; a program may be, too.
fn is_like_task(word: &str) -> bool {
    word.rsplit_once('-').is_some_and(|(role, index)| !role.is_empty() && index.parse::<u32>().is_ok())
}

/// The task and the command of `[TASK] [--] COMMAND`: the first word is a task if the job has one of that name, or if a
/// `--` follows it.
fn split<'a>(words: &'a [String], is_task: &dyn Fn(&str) -> bool) -> (Option<&'a str>, &'a [String]) {
    match words {
        [dashes, command @ ..] if dashes == "--" => (None, command),
        [task, dashes, command @ ..] if dashes == "--" => (Some(task), command),
        [task, command @ ..] if is_task(task) => (Some(task), command),
        command => (None, command),
    }
}

fn duplicate(descriptor: std::os::fd::BorrowedFd<'_>) -> Result<OwnedFd> {
    let own = descriptor.try_clone_to_owned();
    Ok(own.map_err(|error| Error::new(Kind::System, reason(&error)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_word_is_a_task_by_its_name_or_before_dashes() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (text, task, command) in [
            ("train-0 -- ls -l", Some("train-0"), "ls -l"),
            ("train-0 ls", Some("train-0"), "ls"),
            ("gcc-12 --version", None, "gcc-12 --version"),
            ("train -- ls", Some("train"), "ls"),
            ("-- ls", None, "ls"),
            ("ls -l", None, "ls -l"),
            ("apt-get update", None, "apt-get update"),
            ("", None, ""),
        ] {
            let given = words(text);
            assert_eq!(split(&given, &|word| word == "train-0"), (task, &words(command)[..]), "{text}");
        }
    }
}
