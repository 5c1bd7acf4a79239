//! Asking NVML again and again what changes from moment to moment: how busy cards are, and with whom.
//!
//! To load the library and to leave it can wake cards up and let them sleep, so one process stays loaded for as long as
//! somebody watches. It ends with the pipe that it reads from, so with its starter, however that dies.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde::{Deserialize, Serialize};

use super::{library, search};
use crate::gpu::Machine;

/// How busy cards are now, and with whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moment {
    /// Each card's UUID and the percent of the time in which it was busy, where it tells.
    pub(crate) busy: Vec<(String, Option<u8>)>,
    /// A process, the UUID of its card, and the bytes of it that it has.
    pub(crate) processes: Vec<(u32, String, Option<u64>)>,
}

/// The process that answers: a line for each byte.
pub(super) fn answer(files: &[PathBuf]) -> ExitCode {
    let Ok(nvml) = library::load(files) else { return ExitCode::FAILURE };
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    while let Ok(1) = input.read(&mut [0]) {
        let text = serde_json::to_string(&library::moment(&nvml)).unwrap_or_default();
        if writeln!(output, "{text}").and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// The watching process, from its starter's side: never waits.
#[derive(Debug)]
pub(crate) struct Watch {
    child: Child,
    questions: ChildStdin,
    answers: ChildStdout,
    heard: Vec<u8>,
}

impl Watch {
    /// Starts it; nothing where NVML is not to be asked, or this process would have to ask itself.
    pub(crate) fn start(machine: &Machine) -> io::Result<Option<Self>> {
        let (Some((program, words)), Some(files)) =
            (machine.nvml.asker.split_first(), search::files(machine))
        else {
            return Ok(None);
        };
        let mut command = Command::new(program);
        command.args(words).arg("--watch").args(files);
        Self::spawn(&mut command).map(Some)
    }

    fn spawn(command: &mut Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let flags = fcntl_getfl(&answers)?;
        fcntl_setfl(&answers, flags | OFlags::NONBLOCK)?;
        Ok(Self { child, questions, answers, heard: vec![] })
    }

    /// Asks.
    pub(crate) fn ask(&mut self) -> io::Result<()> {
        self.questions.write_all(b"?")
    }

    /// The answer, once it is there.
    pub(crate) fn hear(&mut self) -> io::Result<Option<Moment>> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.answers.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.heard.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // What the library prints of its own is no answer.
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            if let Ok(moment) = serde_json::from_slice(&line) {
                return Ok(Some(moment));
            }
        }
        Ok(None)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
