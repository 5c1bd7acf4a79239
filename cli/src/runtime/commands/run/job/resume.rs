//! `jobc run --resume`: runs only the combinations of a sweep that have not succeeded.

use camino::Utf8Path;
use indexmap::IndexMap;
use jobc_job::record::Record;
use jobc_job::sweep::Sweep;
use jobc_place::state::JobState;
use jobc_schema::Scalar;
use jobc_sys::error::{Error, Kind, Result};

use super::built_plan::BuiltPlan;
use crate::runtime::commands::jobs::Jobs;

/// The numbers of known combinations.
pub(super) type Numbers = Vec<(IndexMap<String, Scalar>, u32)>;

/// The remaining jobs of a sweep.
pub(super) enum Resumption {
    /// These jobs are to be run.
    Remaining(BuiltPlan),
    /// All combinations have succeeded.
    Complete(Sweep),
}

/// Rejects a job file on stdin: it is compiled a second time if the numbers of combinations have changed.
pub(super) fn reject_stdin(path: Option<&Utf8Path>) -> Result<()> {
    if path.is_some_and(|path| path == "-") {
        return Err(Error::new(Kind::Config, "`--resume` cannot read the job file from stdin")
            .help("write it to a file, and name the file"));
    }
    Ok(())
}

/// Compiles a job file and leaves out the combinations that have succeeded in its newest sweep. Without an earlier run,
/// all remain. `None` if the job file has errors, which are printed.
///
/// # Errors
///
/// The file has no matrix, the newest sweep of its name is of another file, or jobs of it still run.
pub(super) fn resume(
    jobs: &Jobs,
    compile: &dyn Fn(Numbers) -> Result<Option<BuiltPlan>>,
) -> Result<Option<Resumption>> {
    let Some(mut built) = compile(vec![])? else { return Ok(None) };
    let Some(name) = built.sweep_name().map(str::to_owned) else {
        return Err(Error::new(Kind::Config, "`--resume` applies only to a job file with a `matrix`")
            .help("leave it out; `retry` of the job file runs failed tasks again"));
    };
    let Some(sweep) = Sweep::newest(jobs.directories(), &name)? else {
        return Ok(Some(Resumption::Remaining(built)));
    };
    if sweep.source != built.source {
        let message =
            format!("the newest sweep `{}` is of another job file: `{}`", sweep.id, sweep.source.display());
        return Err(Error::new(Kind::State, message).help("run the file without `--resume`"));
    }
    let has_own_number = |job: &super::built_plan::BuiltJob| {
        let known = sweep.combination(&job.plan.matrix).map(|known| known.number);
        known.is_some() && known == job.number()
    };
    if !built.jobs.iter().all(has_own_number) {
        let known = sweep.combinations.iter().map(|known| (known.values.clone(), known.number)).collect();
        // The same ports are chosen again.
        drop(built);
        let Some(again) = compile(known)? else { return Ok(None) };
        built = again;
    }
    let mut remaining = Vec::with_capacity(built.jobs.len());
    for job in std::mem::take(&mut built.jobs) {
        if !has_succeeded(jobs, &sweep, &job.plan.matrix)? {
            remaining.push(job);
        }
    }
    if remaining.is_empty() {
        return Ok(Some(Resumption::Complete(sweep)));
    }
    built.jobs = remaining;
    built.resumed = Some(sweep);
    Ok(Some(Resumption::Remaining(built)))
}

/// Whether the job of a combination has succeeded. An error if it still runs.
fn has_succeeded(jobs: &Jobs, sweep: &Sweep, values: &IndexMap<String, Scalar>) -> Result<bool> {
    let Some(known) = sweep.combination(values) else { return Ok(false) };
    let Some(record) = Record::read(&jobs.directories().job(&known.job))? else { return Ok(false) };
    if record.state.is_final() {
        return Ok(record.state == JobState::Succeeded);
    }
    let message = format!("job `{}` of the sweep `{}` is {}", known.job, sweep.id, record.state.as_str());
    let help = format!("wait with `jobc wait {0}`, or stop it with `jobc stop {0}`", sweep.id);
    Err(Error::new(Kind::State, message).help(help))
}
