//! Commands in tasks, by `jobc exec` on the host.

use jobc_sys::error::Result;

use super::program::Connection;
use crate::host::Streams;
use crate::place::{ExecRequest, ExecStreams};
use crate::user_side::UserSide;

/// Runs a command until it ends; returns its exit code.
pub(super) fn exec(
    connection: &Connection,
    id: &str,
    request: &ExecRequest,
    streams: ExecStreams<'_>,
) -> Result<u8> {
    // Before ssh takes the terminal, which then cannot tell that `jobc` is missing.
    connection.jobc_succeeds(&["--version"])?;
    let ExecStreams { stdin, stdout, stderr, signals, started } = streams;
    let words = words(id, request, stdin.is_some());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let streams = Streams::of_files(stdin, stdout, stderr);
    let user = UserSide::new(request, signals);
    if let Some(started) = started {
        started()?;
    }
    user.wait_for(connection.start(&words, streams, request.terminal)?)
}

fn words(id: &str, request: &ExecRequest, has_input: bool) -> Vec<String> {
    let mut words = vec!["exec".to_owned()];
    if request.terminal {
        words.push("--tty".to_owned());
    } else if has_input {
        words.push("--interactive".to_owned());
    }
    let options = [("--workdir", &request.directory), ("--user", &request.user)];
    words.extend(options.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?))));
    words.extend(request.env.iter().map(|variable| format!("--env={variable}")));
    words.extend(request.secrets.then(|| "--secrets".to_owned()));
    words.push(id.to_owned());
    words.extend(request.task.clone());
    words.push("--".to_owned());
    words.extend(request.command.iter().cloned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_command() {
        let request = |task: Option<&str>, terminal| ExecRequest {
            task: task.map(str::to_owned),
            command: vec!["ls".to_owned(), "-l".to_owned()],
            terminal,
            directory: terminal.then(|| "/a b".to_owned()),
            ..ExecRequest::default()
        };
        for (request, has_input, expected) in [
            (request(Some("main-0"), true), true, "exec --tty --workdir=/a b a.1 main-0 -- ls -l"),
            (request(None, false), true, "exec --interactive a.1 -- ls -l"),
            (request(None, false), false, "exec a.1 -- ls -l"),
        ] {
            assert_eq!(words("a.1", &request, has_input).join(" "), expected);
        }
    }
}
