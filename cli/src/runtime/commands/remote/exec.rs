//! `jobc exec` in a task on a cluster.

use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;

use jobc_container::terminal::RawMode;
use jobc_remote::place::{ExecEvent, ExecEvents, ExecRequest, ExecStreams};
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::{Signal, Signals};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::tcgetwinsize;

use super::handle::{failure, handle};
use crate::args::FormatArg;
use crate::input::reason;
use crate::runtime::args::jobs::JobExecArgs;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::commands::target_table::TargetTable;

/// Runs the command until it ends; the exit code is that of the command, or 125 to 127 as on this host.
pub(super) fn run(args: &JobExecArgs) -> Result<ExitCode> {
    exec(args).map_err(Failure::with_program_code)
}

fn exec(args: &JobExecArgs) -> Result<ExitCode> {
    let (word, words) = args.words.split_first().expect("clap requires a word");
    let handle = handle(word)?;
    let (task, command) = split(words);
    if command.is_empty() {
        let error = Error::new(Kind::State, "missing command");
        let help = format!("write it after the task: `jobc exec {handle} TASK -- ls`");
        return Err(Failure::usage_error(error.help(help)));
    }
    let unsupported = [
        (args.user.is_some(), "--user", "the command has the user of the task"),
        (args.lines.format == FormatArg::Json, "--format json", "leave it out"),
    ];
    if let Some((_, option, help)) = unsupported.iter().find(|(is_given, _, _)| *is_given) {
        let error = Error::new(Kind::Unsupported, format!("`{option}` does not apply to jobs on clusters"));
        return Err(Failure::usage_error(error.help(*help)));
    }
    let request = ExecRequest {
        task: task.map(str::to_owned),
        command: wrapped(command, args.workdir.as_deref(), &args.env),
        terminal: args.tty,
        needs_end_of_input: false,
    };
    let place = TargetTable::read(None)?.place(&handle.target)?;
    let signals = Signals::block_forwarded()?;
    let raw_mode = if args.tty { RawMode::enter() } else { None };
    let mut size = if args.tty { window_size() } else { None };
    let mut next = || {
        if let Some(event) = size.take() {
            return Some(event);
        }
        loop {
            match signals.next()? {
                Signal::WINCH if args.tty => {
                    if let Some(event) = window_size() {
                        return Some(event);
                    }
                }
                signal if signal.ends_by_default() => {
                    let number = u8::try_from(signal.number()).unwrap_or_default();
                    return Some(ExecEvent::Interrupted(128 + number));
                }
                _ => {}
            }
        }
    };
    // Input at a terminal is meant for the program.
    let has_input = args.interactive || args.tty;
    let streams = ExecStreams {
        stdin: if has_input { Some(duplicate(stdin().as_fd().try_clone_to_owned())?) } else { None },
        stdout: duplicate(stdout().as_fd().try_clone_to_owned())?,
        stderr: duplicate(stderr().as_fd().try_clone_to_owned())?,
        events: Some(ExecEvents { ready: signals.as_fd(), next: &mut next }),
    };
    let code = place.exec(&handle.name, &request, streams);
    drop(raw_mode);
    Ok(ExitCode::from(code.map_err(failure)?))
}

/// The task and the command of `[TASK] [--] COMMAND`: the first word is a task if it is written like one, or if a `--`
/// follows it.
fn split(words: &[String]) -> (Option<&str>, &[String]) {
    let is_task = |word: &str| {
        word.rsplit_once('-').is_some_and(|(role, index)| !role.is_empty() && index.parse::<u32>().is_ok())
    };
    match words {
        [dashes, command @ ..] if dashes == "--" => (None, command),
        [task, dashes, command @ ..] if dashes == "--" => (Some(task), command),
        [task, command @ ..] if is_task(task) => (Some(task), command),
        command => (None, command),
    }
}

/// The command wrapped to set a directory and variables: the API accepts only arguments.
fn wrapped(command: &[String], directory: Option<&str>, variables: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(directory) = directory {
        words.extend(["sh", "-c", r#"cd -- "$0" && exec "$@""#, directory].map(str::to_owned));
    }
    if !variables.is_empty() {
        words.push("env".to_owned());
        words.extend_from_slice(variables);
    }
    words.extend_from_slice(command);
    words
}

fn window_size() -> Option<ExecEvent> {
    let sides = [stdin(), stdout(), stderr()];
    let size = sides.into_iter().find_map(|fd| tcgetwinsize(fd).ok()).filter(|size| size.ws_row > 0)?;
    Some(ExecEvent::Resized { columns: size.ws_col, rows: size.ws_row })
}

fn duplicate(descriptor: std::io::Result<OwnedFd>) -> Result<OwnedFd> {
    Ok(descriptor.map_err(|error| Error::new(Kind::System, reason(&error)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn first_word_is_a_task_by_its_form_or_before_dashes() {
        for (text, task, command) in [
            ("train-0 -- ls -l", Some("train-0"), "ls -l"),
            ("train-0 ls", Some("train-0"), "ls"),
            ("train -- ls", Some("train"), "ls"),
            ("-- ls", None, "ls"),
            ("ls -l", None, "ls -l"),
            ("apt-get update", None, "apt-get update"),
            ("", None, ""),
        ] {
            let given = words(text);
            assert_eq!(split(&given), (task, &words(command)[..]), "{text}");
        }
    }

    #[test]
    fn directory_and_variables_are_words_before_the_command() {
        assert_eq!(wrapped(&words("ls"), None, &[]), ["ls"]);
        assert_eq!(
            wrapped(&words("ls"), Some("/a b"), &words("X=1 Y=2")),
            ["sh", "-c", r#"cd -- "$0" && exec "$@""#, "/a b", "env", "X=1", "Y=2", "ls"]
        );
    }
}
