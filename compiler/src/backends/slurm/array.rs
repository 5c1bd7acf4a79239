//! `array.sbatch`: all jobs of a matrix as one array.

use std::fmt::Write as _;

use jobc_schema::Pointer;
use jobc_schema::plan::JobPlan;

use crate::backend::{Content, Context, File};
use crate::diagnostic::{Diagnostic, Sink, codes};

use super::group::{Group, groups};
use super::parts::{Parts, settings};
use super::ports::Ports;
use super::{form, header, submit};

/// The jobs of a matrix, if this is the first of them.
fn combinations<'a>(job: &JobPlan, context: &'a Context<'_>) -> Option<(&'a str, Vec<&'a JobPlan>)> {
    let jobs = context.all_jobs.iter().filter(|other| other.target.name == job.target.name);
    let jobs: Vec<&JobPlan> = jobs.collect();
    let [first, _, ..] = &jobs[..] else { return None };
    let base = first.name.strip_suffix("-0").filter(|_| first.name == job.name)?;
    let is_numbered = |(number, job): (usize, &&JobPlan)| job.name == format!("{base}-{number}");
    (!job.matrix.is_empty() && jobs.iter().enumerate().all(is_numbered)).then_some((base, jobs))
}

/// A job's request to Slurm, without its name; `None` if it is not one allocation of equal nodes.
fn request(job: &JobPlan, context: &Context<'_>) -> Option<Vec<String>> {
    let settings = settings(job);
    let all = groups(job, &settings);
    let [group] = &all[..] else { return None };
    if group.is_heterogeneous() {
        return None;
    }
    let parts = Parts { job, settings: &settings, ports: Ports::of(job), context };
    let lines = header::lines(&parts, &all, group, &form::request(&parts, &all, group))
        .into_iter()
        .map(|line| line.text);
    Some(lines.filter(|line| !line.contains("--job-name=")).collect())
}

/// Reports a matrix whose `max_parallel` an array cannot enforce.
pub(super) fn check(job: &JobPlan, context: &Context<'_>, sink: &mut Sink) {
    if job.max_parallel.is_none() {
        return;
    }
    let Some((_, jobs)) = combinations(job, context) else { return };
    let first = request(job, context);
    if first.is_some() && jobs.iter().all(|other| request(other, context) == first) {
        return;
    }
    let message = "the jobs of the matrix differ, so they cannot be one Slurm array with a limit".to_owned();
    let finding = if context.losses.allowed() {
        Diagnostic::warning(codes::SLURM_ARRAY, message)
    } else {
        Diagnostic::error(codes::SLURM_ARRAY, message)
    };
    sink.push(finding.at_key(&Pointer::ROOT.keys(["matrix", "max_parallel"]), "").note(
        "an array needs the same resources in each job, in one allocation of nodes that are alike; leave `max_parallel` out, and submit the jobs one by one",
    ));
}

/// The array of a matrix, or the arrays: their one script, and what is submitted.
pub(super) struct Array {
    /// Next to the first job of a matrix: each task runs the script of its own job.
    pub(super) script: File,
    /// The arrays that the cluster accepts, in order.
    pub(super) parts: Vec<Part>,
    /// Whether an array starts after the one before has ended, because only together they keep `max_parallel`.
    pub(super) one_by_one: bool,
}

/// One array.
pub(super) struct Part {
    /// The number of its first job.
    pub(super) first: usize,
    /// The value of `--array`.
    pub(super) tasks: String,
}

/// The arrays of a matrix, if this is its first job and all jobs request the same.
pub(super) fn array(parts: &Parts<'_>, groups: &[Group<'_>]) -> Option<Array> {
    let (base, jobs) = combinations(parts.job, parts.context)?;
    let first = request(parts.job, parts.context)?;
    if !jobs.iter().all(|other| request(other, parts.context).as_ref() == Some(&first)) {
        return None;
    }
    let mut text = "#!/bin/bash\n".to_owned();
    let group = groups.first()?;
    for line in header::lines(parts, groups, group, &form::request(parts, groups, group)) {
        let line =
            line.text.replace(&format!("--job-name={}", parts.job.name), &format!("--job-name={base}"));
        let line = line.replace("-%j.out", "-%A_%a.out");
        let _ = writeln!(text, "{line}");
    }
    let cap = parts.job.max_parallel.map(|cap| format!("%{cap}")).unwrap_or_default();
    let size = jobs.len();
    let max = parts.settings.max_array_tasks();
    let tasks = |first: usize| format!("0-{}{cap}", (size - first).min(max) - 1);
    let arrays: Vec<Part> = (0..size).step_by(max).map(|first| Part { first, tasks: tasks(first) }).collect();
    let _ = writeln!(text, "#SBATCH --array={}", tasks(0));
    let number = if arrays.len() > 1 {
        let count = arrays.len();
        let _ = writeln!(
            text,
            "# The jobs of {base} from number $1 on. `./submit.sh` submits all {size} as {count} arrays.\n"
        );
        "$((SLURM_ARRAY_TASK_ID + ${1:-0}))"
    } else {
        let _ = writeln!(
            text,
            "# All {size} jobs of {base}. Submit it in this directory: `sbatch array.sbatch`.\n"
        );
        "$SLURM_ARRAY_TASK_ID"
    };
    if !submit::used_secrets(parts.job).is_empty() {
        text.push_str("export jobc_secrets=${PWD%/slurm}.slurm/secrets\n");
    }
    let _ = writeln!(
        text,
        "cd \"../../../{base}-{number}/{}/slurm\" && exec bash job.sbatch",
        parts.job.target.name
    );
    let mut script = File::new("array.sbatch", Content::Text(text));
    script.mode = 0o755;
    Some(Array { script, one_by_one: !cap.is_empty(), parts: arrays })
}
