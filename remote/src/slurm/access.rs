//! How to reach a cluster.

use jobc_schema::target::SlurmTarget;

use crate::host::Host;

/// A host with Slurm's commands, and the target's settings.
#[derive(Debug)]
pub struct Access {
    /// Where Slurm's commands run.
    pub host: Host,
    /// The directory on the shared file system in which runs are kept; by default one in the user's home there.
    pub directory: Option<String>,
    /// The settings of the target.
    pub settings: SlurmTarget,
}

impl Access {
    /// Access through a host.
    pub fn new(host: Host, settings: SlurmTarget) -> Self {
        Self { host, directory: settings.directory.clone(), settings }
    }
}
