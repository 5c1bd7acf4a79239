//! Repeated NVML queries of values that change from moment to moment: utilization, and processes.
//!
//! One process runs while a reader needs it. It exits at the end of its input pipe, so it exits with its parent,
//! however the parent dies.

use std::io::{self, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use jobc_nvml::UsageSample;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::search;
use crate::host::Host;

/// The watching process, from its starter's side: never waits.
#[derive(Debug)]
pub struct NvmlWatch {
    child: Child,
    requests: ChildStdin,
    responses: ChildStdout,
    received: Vec<u8>,
}

impl NvmlWatch {
    /// Starts it; `None` if NVML is disabled, or if this process would have to query itself.
    ///
    /// `tried` programs have failed: the next one is used, and after the last the first again.
    pub fn start(machine: &Host, tried: usize) -> io::Result<Option<Self>> {
        let askers = &machine.nvml.programs;
        let (Some(asker), Some(files)) = (askers.get(tried % askers.len().max(1)), search::files(machine))
        else {
            return Ok(None);
        };
        Self::spawn(asker.command().arg("--watch").args(files)).map(Some)
    }

    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let flags = fcntl_getfl(&answers)?;
        fcntl_setfl(&answers, flags | OFlags::NONBLOCK)?;
        Ok(Self { child, requests: questions, responses: answers, received: vec![] })
    }

    /// Asks.
    pub fn request(&mut self) -> io::Result<()> {
        self.requests.write_all(b"?")
    }

    /// The answer, once it has arrived.
    pub fn receive(&mut self) -> io::Result<Option<UsageSample>> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.responses.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Lines that the library itself prints are not responses.
        while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            if let Ok(moment) = serde_json::from_slice(&line) {
                return Ok(Some(moment));
            }
        }
        Ok(None)
    }
}

impl Drop for NvmlWatch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
