//! `jobc run --retry-of JOB`: runs a job again, and shows first what is different from that run.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Artifact;
use jobc_job::directory::Directory;
use jobc_job::sweep::Sweep;
use jobc_place::job_ref::JobRef;
use jobc_schema::Plan;
use jobc_schema::plan::JobPlan;
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::id::JobId;
use serde_json::Value;

use super::built_plan::BuiltPlan;
use crate::changes::compare::PLAN;
use crate::changes::target_files::TargetFiles;
use crate::changes::{Comparison, print};
use crate::runtime::commands::jobs::{Failure, Jobs, local};
use crate::terminal;

/// The run that is repeated.
pub(super) struct EarlierRun {
    directory: Directory,
    /// Its job file.
    source: Utf8PathBuf,
    /// The sweep that it is a combination of.
    sweep: Option<JobId>,
    has_ended: bool,
}

impl EarlierRun {
    /// A run of this host.
    ///
    /// # Errors
    ///
    /// The run or its job file is unknown.
    pub(super) fn find(jobs: &Jobs, job: &JobRef) -> Result<Self> {
        let found = local(job).and_then(|word| jobs.record(word));
        let (directory, record) = found.map_err(Failure::into_error)?;
        let source = Utf8PathBuf::from_path_buf(record.source).unwrap_or_default();
        Ok(Self { directory, source, sweep: record.sweep, has_ended: record.state.is_final() })
    }

    /// Its job file, to be compiled again.
    ///
    /// # Errors
    ///
    /// It is gone: the run had its job file on stdin, or no job file.
    pub(super) fn job_file(&self) -> Result<&Utf8Path> {
        if self.source.is_file() {
            return Ok(&self.source);
        }
        let message = format!("the job file of `{}` is not there: `{}`", self.directory.id, self.source);
        Err(Error::new(Kind::NotFound, message)
            .help(format!("name it: `jobc run job.yaml --retry-of {}`", self.directory.id)))
    }

    /// Of a sweep, leaves the combination that is repeated. Its new run takes the place of this one.
    ///
    /// # Errors
    ///
    /// This one still runs, or its sweep cannot be read.
    pub(super) fn select(&self, built: &mut BuiltPlan, jobs: &Jobs) -> Result<()> {
        let Some(sweep) = &self.sweep else { return Ok(()) };
        let id = &self.directory.id;
        if !built.jobs.iter().any(|job| job.plan.name == id.name) {
            return Ok(());
        }
        if !self.has_ended {
            let message = format!("`{id}` of the sweep `{sweep}` has not ended");
            return Err(Error::new(Kind::State, message)
                .help(format!("wait with `jobc wait {id}`, or stop it with `jobc stop {id}`")));
        }
        built.jobs.retain(|job| job.plan.name == id.name);
        built.resumed = Sweep::read(jobs.directories(), sweep)?;
        Ok(())
    }

    /// Prints what is different between its plan and the jobs that are run now.
    pub(super) fn show_changes(&self, built: &BuiltPlan) -> Result<()> {
        let path = self.directory.plan_file();
        let text = std::fs::read(&path).at_path("read", &path)?;
        let failed = |error: serde_json::Error| {
            Error::new(Kind::State, format!("`{}` is not the plan of a job: {error}", path.display()))
        };
        let then: JobPlan = serde_json::from_slice(&text).map_err(failed)?;
        // Of a sweep, the combination that is repeated.
        let now = built.jobs.iter().find(|job| job.plan.name == then.name).or(built.jobs.first());
        let Some(now) = now else { return Ok(()) };
        let [then, now] = [&then, &now.plan].map(|plan| files(plan, &now.plan.name));
        let changes = Comparison::of(&[then], &[now]);
        let id = &self.directory.id;
        let text = print::text(&changes, &id.to_string(), false);
        if !changes.files.is_empty() {
            terminal::eprint(&format!("jobc: changes since {id}:\n"));
        }
        terminal::eprint(&text);
        Ok(())
    }
}

/// A plan as the only file of a job, without the ports that jobc chose, which are others in each run.
fn files(plan: &JobPlan, name: &str) -> TargetFiles {
    let mut plan = plan.clone();
    for port in plan.roles.iter_mut().flat_map(|role| &mut role.ports).filter(|port| port.auto) {
        port.number = 0;
        port.shared_base = None;
    }
    let target = plan.target.name.clone();
    let plan: Value = serde_json::to_value(Plan { version: 1, jobs: vec![plan] }).unwrap_or_default();
    let artifact = Artifact { path: PLAN.into(), mode: 0o644, bytes: plan.to_string().into_bytes() };
    TargetFiles { job: name.to_owned(), target, artifacts: vec![artifact] }
}
