//! Where the outputs of a run are.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use jobc_schema::plan::{Plan, VolumeKind, VolumeSource};
use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::question::{Login, Question};

/// Asks for the outputs of a run.
#[derive(Deserialize, Serialize)]
pub(crate) struct Outputs {
    pub(crate) run: String,
    /// Directories of the cluster by the name of an output (`slurm.storage`).
    pub(crate) storage: BTreeMap<String, String>,
}

/// A directory of the cluster that a role writes to.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Output {
    pub(crate) role: String,
    /// Where the role has it.
    pub(crate) mount: String,
    /// Where it is.
    pub(crate) path: String,
}

impl Question for Outputs {
    type Answer = Vec<Output>;

    fn answer(self, login: &Login) -> Result<Vec<Output>, Fault> {
        let run = login.run(&self.run);
        let text = fs::read(run.join("target/plan.json")).map_err(|_| Fault::NoRun)?;
        let plan: Plan = serde_json::from_slice(&text)
            .map_err(|error| Fault::Other(format!("the plan of the job cannot be read: {error}"), None))?;
        let Some(job) = plan.jobs.into_iter().next() else { return Ok(vec![]) };
        let mut found = Vec::new();
        for (role, mount) in
            job.roles.iter().flat_map(|role| role.mounts.iter().map(move |mount| (role, mount)))
        {
            let Some(volume) = job.volumes.get(&mount.volume) else { continue };
            let own = match &volume.source {
                VolumeSource::Path { path } => Some(path),
                _ => None,
            };
            let source =
                self.storage.get(&mount.volume).or(own).filter(|_| volume.kind == VolumeKind::Output);
            let Some(source) = source else { continue };
            let path: PathBuf =
                run.join("files").join(source).join(mount.subpath.as_deref().unwrap_or_default());
            let path = fs::canonicalize(&path).unwrap_or(path);
            found.push(Output {
                role: role.name.clone(),
                mount: mount.path.clone(),
                path: path.to_string_lossy().into_owned(),
            });
        }
        Ok(found)
    }
}

impl Output {
    /// Where a path of a task of the role is on the cluster, if it is below this output.
    pub(crate) fn place_of(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(self.mount.trim_end_matches('/'))?;
        let is_below = rest.is_empty() || rest.starts_with('/');
        (is_below && !rest.split('/').any(|part| part == "..")).then(|| format!("{}{rest}", self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_task_is_in_an_output() {
        let output = Output { role: "train".into(), mount: "/out/".into(), path: "/scratch/models".into() };
        for (path, place) in [
            ("/out/a/b", Some("/scratch/models/a/b")),
            ("/out", Some("/scratch/models")),
            ("/output", None),
            ("/out/../etc", None),
        ] {
            assert_eq!(output.place_of(path).as_deref(), place, "{path}");
        }
    }
}
