//! The end of a container: what of it runs is killed, what it has left is removed.

use super::{Container, config, groups};
use crate::error::{Error, Kind, Result};
use crate::hooks::{self, Given, Stage};
use crate::signals::Signal;
use crate::state::Status;

/// How long a killed process may take to be gone, in milliseconds. One that waits for a device takes longer.
const PATIENCE: u32 = 10_000;

impl Container {
    /// Kills what is left of it where that is wanted, and removes what it has left; returns what of the removal went
    /// wrong and keeps nothing from being removed: the hooks that belong behind it.
    pub fn delete(self, force: bool) -> Result<Vec<Error>> {
        let status = self.status();
        if !force && matches!(status, Status::Running | Status::Paused) {
            let error = self.is_not("stopped", status);
            return Err(error.help("end it first, or delete it with `--force`"));
        }
        self.end()?;
        groups(&self.record).remove()?;
        let failed = self.run_poststop();
        self.entry.remove()?;
        Ok(failed)
    }

    /// Kills whatever of it still runs, and waits until it is gone.
    pub(super) fn end(&self) -> Result<()> {
        let groups = groups(&self.record);
        if let Some(process) = self.record.process {
            if let Some(pidfd) = process.open()? {
                Signal::KILL.send(&pidfd)?;
                // Under version 1 what is frozen does not even die.
                if groups.is_frozen()? {
                    groups.thaw()?;
                }
            }
            if !process.wait(PATIENCE)? {
                let message = format!("process {} was killed and is not gone", process.pid);
                let help = "it waits for the kernel, perhaps for a file system or a device; try again later";
                return Err(Error::new(Kind::Machine, message).help(help));
            }
        }
        // The end of a pid namespace's first process is that of all others in it. Without one they live on, and without
        // a process in the record nobody knows what there is.
        if self.record.pid_namespace && self.record.process.is_some() { Ok(()) } else { groups.kill() }
    }

    fn run_poststop(&self) -> Vec<Error> {
        if !self.record.poststop {
            return Vec::new();
        }
        let run = || {
            let config = config(self.entry.path())?;
            let state = self.state(&config, Status::Stopped)?;
            let given = Given { state: &state, bundle: &self.record.bundle, given_up: None };
            Ok(hooks::run_all(Stage::Poststop, config.hooks().as_ref(), given))
        };
        run().unwrap_or_else(|error| vec![error])
    }
}
