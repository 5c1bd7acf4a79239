//! Handing jobs in: their folders, the files in them, and a supervisor for each.

use std::path::Path;

use jobc_runtime::error::{Error, Kind, Result};
use jobc_runtime::job::folder::replace;
use jobc_runtime::job::submission::{Submission, Turn};
use jobc_runtime::job::{Folder, Places};
use jobc_schema::plan::JobPlan;

use super::{Built, BuiltJob, options};
use crate::args::run::RunArgs;
use crate::output::fill_new;

/// Jobs whose folders are there and whose supervisors are not.
///
/// What is dropped before its supervisor was started leaves nothing.
pub(super) struct Submitted {
    jobs: Vec<Folder>,
}

/// Makes the folders of all jobs, with what their supervisors need.
pub(super) fn submit(args: &RunArgs, built: &Built, places: &Places) -> Result<Submitted> {
    let several = built.jobs.len() > 1;
    let slots = args.parallel.or(built.jobs[0].plan.max_parallel).unwrap_or(1);
    let mut submitted = Submitted { jobs: Vec::with_capacity(built.jobs.len()) };
    let submissions = built.jobs.iter().map(|job| submission(args, &job.plan, built));
    let submissions = submissions.collect::<Result<Vec<_>>>()?;
    for (number, (job, mut submission)) in built.jobs.iter().zip(submissions).enumerate() {
        let folder = places.create(&job.plan.name)?;
        submitted.jobs.push(folder.clone());
        if several {
            let turns = turns(places, &submitted.jobs[0]);
            submission.turn =
                Some(Turn { folder: turns, slots, number: u32::try_from(number).unwrap_or(u32::MAX) });
        }
        write(&folder, job, &submission)?;
    }
    Ok(submitted)
}

/// Where the jobs of a matrix agree on whose turn it is: beside the jobs, since none of them is there for all of them.
fn turns(places: &Places, first: &Folder) -> std::path::PathBuf {
    places.state.with_file_name("turns").join(first.id.to_string())
}

fn submission(args: &RunArgs, plan: &JobPlan, built: &Built) -> Result<Submission> {
    Ok(Submission {
        source: built.source.clone(),
        folder: built.folder.clone(),
        queue: args.queue,
        without_gpus: args.no_gpu,
        allow_unenforced: args.allow_unenforced,
        roots: options::roots(&args.root, plan)?.into_iter().collect(),
        publish: args.publish.iter().map(|word| options::publish(word, plan)).collect::<Result<_>>()?,
        terminal: args.terminal.as_deref().map(|word| options::task(word, plan)).transpose()?,
        keep: args.keep,
        attended: !args.detach,
        ..Submission::default()
    })
}

fn write(folder: &Folder, job: &BuiltJob, submission: &Submission) -> Result<()> {
    let cannot = |path: &Path, error: &std::io::Error| {
        let why = crate::input::reason(error);
        Error::new(Kind::Machine, format!("cannot write `{}`: {why}", path.display()))
    };
    let build = folder.build();
    fill_new(&build, &job.files).map_err(|error| cannot(&build, &error))?;
    if let Some(plan) = job.files.iter().find(|file| file.path == "plan.json") {
        replace(&folder.plan_file(), &plan.bytes)?;
    }
    let text = serde_json::to_vec(submission).expect("a submission is plain JSON");
    replace(&folder.submission_file(), &text)
}
