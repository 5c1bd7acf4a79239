//! Submits the jobs of a matrix as one array, which keeps `max_parallel`, or as several where the cluster limits arrays.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::access::Access;
use super::login::{SubmitArray, Submitted};
use super::submit;
use crate::built::BatchScript;
use crate::place::{Submission, SubmitError};

/// Submits all jobs as arrays; false if they cannot be.
pub(crate) fn submit(access: &Access, submissions: &[Submission<'_>]) -> Result<bool, SubmitError> {
    let Some(script) = script(submissions) else { return Ok(false) };
    let settings = submissions[0].built.plan.target.settings.slurm.clone().unwrap_or_default();
    let mut previous = "";
    for part in submissions.chunks(settings.max_array_tasks()) {
        if !submit_part(access, part, &script, previous)? {
            return Ok(false);
        }
        previous = &part[0].built.plan.name;
    }
    Ok(true)
}

/// Submits jobs as one array. With `max_parallel`, it starts after the array of the run `previous`.
fn submit_part(
    access: &Access,
    submissions: &[Submission<'_>],
    script: &str,
    previous: &str,
) -> Result<bool, SubmitError> {
    let leader = &submissions[0];
    let runs = submissions.iter().map(|one| submit::new_run(access, one));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let limit = leader.built.plan.max_parallel;
    let program = access.program_of(&leader.built.scripts)?;
    let question = || SubmitArray {
        program: program.clone(),
        plan: leader.identity.label().to_owned(),
        cwd: submit::working_directory(),
        limit,
        after: limit.and((!previous.is_empty()).then(|| previous.to_owned())),
        script: script.to_owned(),
        runs: runs.clone(),
    };
    match access.ask_with_program("submit the jobs of the matrix", question)? {
        Submitted::Done => Ok(true),
        Submitted::Taken => Ok(false),
        Submitted::Refused { words, .. } => {
            Err(SubmitError::Refused(submit::refused(&leader.built.scripts, "job", &words)))
        }
    }
}

/// The script of the array: the request that all jobs share; each task runs the script of its job.
fn script(submissions: &[Submission<'_>]) -> Option<String> {
    let scripts: Option<Vec<&BatchScript>> = submissions
        .iter()
        .map(|one| match &one.built.scripts[..] {
            [script] if !script.is_heterogeneous() => Some(script),
            _ => None,
        })
        .collect();
    let scripts = scripts?;
    let request = |script: &BatchScript| -> Vec<String> {
        let is_own = |line: &&str| !line.contains("--job-name=") && !line.contains("--output=");
        script.directives().filter(is_own).map(str::to_owned).collect()
    };
    let requests: BTreeSet<Vec<String>> = scripts.iter().map(|script| request(script)).collect();
    let job = &submissions[0].identity.job;
    let [options] = &requests.into_iter().collect::<Vec<_>>()[..] else { return None };
    if scripts.len() < 2 {
        return None;
    }
    let base = job.rsplit_once('-').map_or(job.as_str(), |(base, _)| base);
    let mut text = format!("#!/bin/bash\n#SBATCH --job-name={base}\n");
    for line in options {
        let _ = writeln!(text, "{line}");
    }
    let arguments = match scripts.first().and_then(|script| script.direct_role()) {
        Some(role) => format!("\"--output=${{run//%/%%}}/logs/{role}-%t.log\" --open-mode=append"),
        None => "\"$run\"".to_owned(),
    };
    let _ = write!(
        text,
        "# Each task runs the script of its own job.\n\
         export SLURM_EXPORT_ENV=ALL PATH\n\
         run=${{PWD%/*}}/$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" array)\n\
         cd \"$run/target/slurm\" && exec bash job.sbatch {arguments}\n",
    );
    Some(text)
}
