//! The inputs for all files.

use jobc_schema::plan::JobPlan;
use jobc_schema::shell::quote;
use jobc_schema::target::{SlurmContainer, SlurmTarget};

use crate::backend::Context;

use super::ports::Ports;

/// A job, and the known facts about its target.
pub(super) struct Parts<'a> {
    pub(super) job: &'a JobPlan,
    pub(super) settings: &'a SlurmTarget,
    pub(super) ports: Ports,
    pub(super) context: &'a Context<'a>,
}

impl Parts<'_> {
    /// What runs the containers.
    pub(super) fn container(&self) -> SlurmContainer {
        self.settings.container
    }

    /// `jobc` on the nodes, as one word of the shell.
    pub(super) fn program(&self) -> String {
        let path = self.settings.program().unwrap_or_default();
        let quoted = |path: &str| {
            let path = SlurmTarget::of_user(path, "\0");
            let parts =
                path.split('\0').map(|part| if part.is_empty() { String::new() } else { quote(part) });
            parts.collect::<Vec<_>>().join("\"$USER\"")
        };
        path.strip_prefix("~/").map_or_else(|| quoted(&path), |rest| format!("\"$HOME\"/{}", quoted(rest)))
    }
}

/// The target's settings, or the defaults.
pub(super) fn settings(job: &JobPlan) -> SlurmTarget {
    job.target.settings.slurm.clone().unwrap_or_default()
}
