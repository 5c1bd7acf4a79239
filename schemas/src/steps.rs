//! What `jobc node` runs: the file beside a batch script that says how the tasks of its roles are started by `srun`.
//!
//! What tasks need of each other, their retries and limits are in the plan of the job, one directory above.

use serde::{Deserialize, Serialize};

/// How jobc runs the tasks of a Slurm job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepsPlan {
    /// Version of this format. Always 1.
    pub version: u32,
    /// Name of the batch script, without `.sbatch`.
    pub script: String,
    /// Directory of runs that `sbatch` starts. Default: beside the directory of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The roles, in the order of the job.
    pub roles: Vec<RoleSteps>,
    /// The ports that a Slurm job derives from its number.
    pub ports: PortRange,
    /// Whether the tasks run copies of bundles in which addresses are filled in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bundles: bool,
    /// Whether the tasks get the code of the job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub code: bool,
}

/// How the tasks of a role are started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleSteps {
    /// The role.
    pub role: String,
    /// The part of a heterogeneous job that its nodes are in; 0 in others.
    pub component: u32,
    /// The node of its first instance, counted in the part.
    pub first_node: u32,
    /// How many steps are started: one for each task, one for all `ranks`, or that of the first task alone.
    pub steps: u32,
    /// Whether a step has a process on each node of the role.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ranks: bool,
    /// The command that starts a step, as bash reads it; empty if the nodes are for processes of another role.
    pub step: String,
}

/// Where ports that the job leaves open are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortRange {
    /// The first port of all jobs.
    pub first: u32,
    /// How many ports there are.
    pub count: u32,
    /// How many a job takes.
    pub of_job: u32,
    /// The open ports, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenPort>,
}

/// A port that the job leaves open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenPort {
    /// The role.
    pub role: String,
    /// Its label.
    pub label: String,
    /// Where it is for the first instance, counted from the first port of the job.
    pub offset: u32,
    /// How many numbers each instance has.
    pub count: u32,
}

impl PortRange {
    /// The first port of a Slurm job.
    pub fn of_job(&self, number: u32) -> u32 {
        let of_job = self.of_job.max(1);
        self.first + number % (self.count / of_job).max(1) * of_job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_follow_each_other_have_different_ports() {
        let range = PortRange { first: 10_240, count: 22_528, of_job: 3, open: vec![] };
        let all: Vec<u32> = [0, 1, 7_508, 7_509].into_iter().map(|number| range.of_job(number)).collect();
        assert_eq!(all, [10_240, 10_243, 32_764, 10_240]);
        let whole = PortRange { of_job: 30_000, ..range };
        assert_eq!(whole.of_job(5), 10_240);
    }
}
