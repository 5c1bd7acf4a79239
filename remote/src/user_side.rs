//! The user's side of a command in a task elsewhere: the terminal, the signals, and what a place is asked by words alone.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use jobc_container::terminal::RawMode;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::readable;
use jobc_sys::signals::{Signal, Signals};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::tcgetwinsize;

use crate::host::Running;
use crate::place::ExecRequest;

/// How often the end of a command is looked for.
const INTERVAL: Duration = Duration::from_millis(20);

/// The terminal and the signals of the user.
pub(crate) struct UserSide<'a> {
    signals: Option<&'a Signals>,
    has_terminal: bool,
    /// A size that the other side does not know yet.
    size: Option<UserEvent>,
    /// Held for as long as the command runs.
    #[allow(dead_code)] // dropping it is its use
    raw_mode: Option<RawMode>,
}

/// What happens at the user's side of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserEvent {
    /// The terminal has this size now.
    Resized {
        /// Characters in a line.
        columns: u16,
        /// Lines.
        rows: u16,
    },
    /// The connection is to end, with this exit code.
    Interrupted(u8),
}

impl<'a> UserSide<'a> {
    /// The user's side from now on; a terminal becomes raw.
    pub(crate) fn new(request: &ExecRequest, signals: Option<&'a Signals>) -> Self {
        let has_terminal = request.terminal && signals.is_some();
        let raw_mode = if has_terminal { RawMode::enter() } else { None };
        let size = if has_terminal { window_size() } else { None };
        Self { signals, has_terminal, size, raw_mode }
    }

    /// Readable when there is an event.
    pub(crate) fn ready(&self) -> Option<BorrowedFd<'_>> {
        self.signals.map(|signals| signals.as_fd())
    }

    /// Takes the next event. The size of a terminal comes first.
    pub(crate) fn next(&mut self) -> Option<UserEvent> {
        if let Some(event) = self.size.take() {
            return Some(event);
        }
        loop {
            match self.signals?.next()? {
                Signal::WINCH if self.has_terminal => {
                    if let Some(event) = window_size() {
                        return Some(event);
                    }
                }
                signal if signal.ends_by_default() => {
                    let number = u8::try_from(signal.number()).unwrap_or_default();
                    return Some(UserEvent::Interrupted(128 + number));
                }
                _ => {}
            }
        }
    }

    /// Waits for the end of a command whose program, ssh or srun, passes the size of its terminal on by itself. Returns its
    /// exit code.
    pub(crate) fn wait_for(mut self, mut running: Running) -> Result<u8> {
        while let Some(signals) = self.ready()
            && !running.has_ended()
        {
            let has_signal = readable::wait(&[signals], Some(INTERVAL)).is_ok_and(|ready| ready[0]);
            while has_signal && let Some(event) = self.next() {
                if let UserEvent::Interrupted(code) = event {
                    running.stop();
                    return Ok(code);
                }
            }
        }
        Ok(u8::try_from(running.wait()?).unwrap_or(u8::MAX))
    }
}

fn window_size() -> Option<UserEvent> {
    let sides = [stdin(), stdout(), stderr()];
    let size = sides.into_iter().find_map(|fd| tcgetwinsize(fd).ok()).filter(|size| size.ws_row > 0)?;
    Some(UserEvent::Resized { columns: size.ws_col, rows: size.ws_row })
}

/// The words of a command, with those that set a directory and variables, for a place that accepts only words.
///
/// # Errors
///
/// The request has what words cannot say.
pub(crate) fn words(request: &ExecRequest) -> Result<Vec<String>> {
    let unsupported = [
        (request.user.is_some(), "--user", "the command has the user of the task"),
        (request.secrets, "--secrets", "the command has the variables of the task, also those with secrets"),
    ];
    if let Some((_, option, help)) = unsupported.iter().find(|(is_given, _, _)| *is_given) {
        let error = Error::new(Kind::Unsupported, format!("`{option}` does not apply to jobs on clusters"));
        return Err(error.help(*help));
    }
    let mut words = Vec::new();
    if let Some(directory) = &request.directory {
        words.extend(["sh", "-c", r#"cd -- "$0" && exec "$@""#, directory].map(str::to_owned));
    }
    if !request.env.is_empty() {
        words.push("env".to_owned());
        words.extend_from_slice(&request.env);
    }
    words.extend_from_slice(&request.command);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_and_variables_are_words_before_the_command() {
        let words = |directory: Option<&str>, env: &str| {
            let of = |text: &str| text.split_whitespace().map(str::to_owned).collect();
            let directory = directory.map(str::to_owned);
            let request =
                ExecRequest { command: of("ls"), directory, env: of(env), ..ExecRequest::default() };
            words(&request).unwrap()
        };
        assert_eq!(words(None, ""), ["ls"]);
        assert_eq!(
            words(Some("/a b"), "X=1 Y=2"),
            ["sh", "-c", r#"cd -- "$0" && exec "$@""#, "/a b", "env", "X=1", "Y=2", "ls"]
        );
        let with_user = ExecRequest { user: Some("root".to_owned()), ..ExecRequest::default() };
        assert_eq!(super::words(&with_user).unwrap_err().kind, Kind::Unsupported);
    }
}
