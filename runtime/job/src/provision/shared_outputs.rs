//! Outputs that another run of the same job writes to as well.

use std::path::{Path, PathBuf};

use jobc_schema::plan::{JobPlan, VolumeKind};
use jobc_schema::plural;

use super::fields::{field_of, mounted_volumes, path_of_host};
use crate::directory::{Directory, JobDirectories};
use crate::newest;
use crate::submission::Submission;

/// A sentence for each output of a job that an earlier run of it, which has not ended, writes to: the same program writes
/// the same files. Other jobs may share a directory on purpose. `base` is the base of relative paths. Nothing where the
/// other runs cannot be read.
pub fn shared_outputs(plan: &JobPlan, base: &Path, places: &JobDirectories) -> Vec<String> {
    let own: Vec<(&str, PathBuf)> = outputs(plan, base).collect();
    if own.is_empty() {
        return vec![];
    }
    let running = newest::running(places).unwrap_or_default();
    let others: Vec<_> = running
        .into_iter()
        .filter(|(_, record)| record.id.name == plan.name)
        .filter_map(|(directory, record)| Some((record.id, plan_of(&directory)?)))
        .collect();
    let sentence = |(name, path): &(&str, PathBuf)| {
        let shares = |(plan, base): &(JobPlan, PathBuf)| outputs(plan, base).any(|(_, their)| their == *path);
        let mut runs = others.iter().filter(|(_, of_run)| shares(of_run)).map(|(id, _)| id);
        let first = runs.next()?;
        let more = match runs.count() {
            0 => ", which runs, writes".to_owned(),
            count => format!(" and {}, which run, write", plural(count, "other run")),
        };
        Some(format!("`{}`: `{first}`{more} to `{}` too", field_of(plan, name), path.display()))
    };
    own.iter().filter_map(sentence).collect()
}

/// The outputs that are directories of this host, without symbolic links where they exist.
fn outputs<'a>(plan: &'a JobPlan, base: &'a Path) -> impl Iterator<Item = (&'a str, PathBuf)> {
    let is_output = |name: &&str| plan.volumes.get(*name).is_some_and(|it| it.kind == VolumeKind::Output);
    let names = mounted_volumes(plan).filter(is_output);
    let paths = names.filter_map(move |name| Some((name, path_of_host(plan, base, name)?)));
    paths.map(|(name, path)| (name, path.canonicalize().unwrap_or(path)))
}

fn plan_of(directory: &Directory) -> Option<(JobPlan, PathBuf)> {
    let plan = std::fs::read(directory.plan_file()).ok()?;
    let submission = std::fs::read(directory.submission_file()).ok()?;
    let submission: Submission = serde_json::from_slice(&submission).ok()?;
    Some((serde_json::from_slice(&plan).ok()?, submission.directory))
}
