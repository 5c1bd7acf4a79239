//! The record of a run: what its directory says about it from the first moment, in `job.json`.
//!
//! A run exists as soon as this file does. Everything that is shown later can be read from the cluster alone, by any
//! host of the user.

use std::collections::BTreeMap;

use jobc_schema::plan::{Launch, RolePlan};
use jobc_schema::steps::StepsPlan;
use serde::{Deserialize, Serialize};

use super::time;
use crate::built::{BatchScript, BuiltDirectory};
use crate::place::Submission;
use jobc_place::outline;

/// The options whose lines matter later, because Slurm's reasons are about them.
const OPTIONS: [&str; 18] = [
    "job-name",
    "nodes",
    "cpus-per-task",
    "mem",
    "mem-per-cpu",
    "mem-per-gpu",
    "gpus-per-node",
    "gpus-per-task",
    "gres",
    "tmp",
    "time",
    "partition",
    "account",
    "qos",
    "reservation",
    "constraint",
    "licenses",
    "begin",
];

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    /// The version of this format.
    pub(crate) version: u32,
    /// The name in the job file.
    pub(crate) job: String,
    /// The beginning of the digest of the plan.
    pub(crate) plan: String,
    /// The user who submitted it.
    pub(crate) user: String,
    /// When, in seconds since 1970.
    pub(crate) submitted: u64,
    /// The longest time that its tasks have to end, in seconds.
    pub(crate) grace: u64,
    /// Its Slurm jobs, each after its dependencies.
    pub(crate) groups: Vec<GroupRecord>,
    /// What is kept of its plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outline: Option<String>,
}

/// Roles that are one Slurm job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupRecord {
    /// The name of its script.
    pub(crate) name: String,
    /// The groups that must succeed before.
    pub(crate) after: Vec<String>,
    /// Its roles, each with the number of tasks that run something.
    pub(crate) roles: Vec<(String, u32)>,
    /// Whether Slurm alone runs its tasks: its script writes nothing about them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) direct: bool,
    /// Whether they run on the files of the nodes, though the target has containers of jobc.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) bare: bool,
    /// Where options of its script come from: lines of the job, or settings of the target.
    pub(crate) places: BTreeMap<String, String>,
}

impl RunRecord {
    /// The record of a submission.
    pub(crate) fn of(submission: &Submission<'_>) -> Self {
        let built = submission.built;
        Self {
            version: 1,
            job: submission.identity.job.clone(),
            plan: submission.identity.label().to_owned(),
            user: submission.user.to_owned(),
            submitted: time::now(),
            grace: built.plan.roles.iter().map(|role| role.grace_period_seconds).max().unwrap_or(30),
            groups: built.scripts.iter().map(|script| GroupRecord::of(script, built)).collect(),
            outline: outline::of(&built.plan),
        }
    }

    /// Whether a group of it has no supervisor.
    pub(crate) fn is_direct(&self) -> bool {
        self.groups.iter().any(|group| group.direct)
    }

    /// How many tasks run.
    pub(crate) fn task_count(&self) -> u64 {
        self.groups.iter().flat_map(|group| &group.roles).map(|(_, count)| u64::from(*count)).sum()
    }
}

/// The roles of a script that jobc runs on the nodes.
fn of_steps(script: &BatchScript, built: &BuiltDirectory) -> Option<Vec<String>> {
    let path = format!("slurm/{}.json", script.group);
    let file = built.files.iter().find(|file| file.path == path)?;
    let steps: StepsPlan = serde_json::from_slice(&file.bytes).ok()?;
    Some(steps.roles.into_iter().filter(|role| role.steps > 0).map(|role| role.role).collect())
}

impl GroupRecord {
    fn of(script: &BatchScript, built: &BuiltDirectory) -> Self {
        let (plan, direct) = (&built.plan, script.direct_role());
        let roles = direct.map(|role| vec![role.to_owned()]).or_else(|| of_steps(script, built));
        let count = |role: &RolePlan| match role.launch {
            Launch::First => 1,
            Launch::All | Launch::None => role.instances,
        };
        let counted = |name: String| Some((count(plan.role(&name)?), name));
        let roles = roles.into_iter().flatten().filter_map(counted).map(|(count, name)| (name, count));
        let places = OPTIONS.iter().filter_map(|name| Some(((*name).to_owned(), script.origin(name)?)));
        Self {
            name: script.group.clone(),
            after: script.after.clone(),
            roles: roles.collect(),
            direct: direct.is_some(),
            bare: direct.is_some() && !script.text.contains(" run --cgroup inherited "),
            places: places.collect(),
        }
    }

    /// The names of its tasks.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (&str, u32)> {
        self.roles.iter().flat_map(|(role, count)| (0..*count).map(move |index| (role.as_str(), index)))
    }
}
