//! Allocates host resources to the tasks of a built job, as a supervisor does before it creates their containers, and
//! prints how long it takes.
//!
//! ```text
//! allocate BUILD STATE ROUNDS
//! ```
//!
//! BUILD is a directory of `jobc build` with bundles whose image is `host`, STATE an empty directory on the disk of the
//! jobs' state. A round processes all tasks of the first job, each with its own container directory. Prints a line of
//! JSON: the milliseconds of the one-time work, and of each round.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use jobc_job::directory::Directory;
use jobc_job::host_environment::HostEnvironments;
use jobc_job::provision::{self, Job};
use jobc_job::secrets::Secrets;
use jobc_job::submission::Submission;
use jobc_schema::plan::Plan;
use jobc_sys::Result;
use jobc_sys::error::{Error, Kind};
use jobc_sys::id::{JobId, TaskId};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [build, state, rounds] = words.as_slice() else {
        eprintln!("usage: allocate BUILD STATE ROUNDS");
        std::process::exit(2);
    };
    match measure(Path::new(build), Path::new(state), rounds.parse().unwrap_or(10)) {
        Ok((once, rounds)) => println!("{}", serde_json::json!({"once_ms": once, "rounds_ms": rounds})),
        Err(error) => {
            eprintln!("allocate: {error}");
            std::process::exit(1);
        }
    }
}

fn measure(build: &Path, state: &Path, rounds: usize) -> Result<(f64, Vec<f64>)> {
    let io = |error: std::io::Error| Error::new(Kind::System, error.to_string());
    let text = std::fs::read(build.join("plan.json")).map_err(io)?;
    let plan: Plan = serde_json::from_slice(&text).map_err(|error| io(error.into()))?;
    let plan = plan.jobs.into_iter().next().ok_or_else(|| Error::new(Kind::Config, "a plan without jobs"))?;
    let directory = Directory {
        id: JobId { name: plan.name.clone(), run: 1 },
        state: state.to_owned(),
        record: state.to_owned(),
    };
    let build = build.canonicalize().map_err(io)?;
    std::os::unix::fs::symlink(build, directory.build()).map_err(io)?;
    let submission = Submission { directory: state.to_owned(), ..Submission::default() };
    let tasks: Vec<TaskId> = plan
        .roles
        .iter()
        .flat_map(|role| (0..role.instances).map(|index| TaskId::new(&role.name, index)))
        .collect();
    let begun = Instant::now();
    let secrets = Secrets::read(&plan, &submission.directory)?;
    let environments = HostEnvironments::default();
    let job = Job {
        directory: &directory,
        plan: &plan,
        submission: &submission,
        secrets: &secrets,
        environments: &environments,
    };
    let provided = provision::provide(&job, &mut |_| {}, &AtomicBool::new(false))?;
    let once = milliseconds(begun);
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let containers: Vec<_> = tasks.iter().map(|task| state.join(format!("{round}-{task}"))).collect();
        containers.iter().try_for_each(std::fs::create_dir).map_err(io)?;
        let begun = Instant::now();
        for (task, container) in tasks.iter().zip(&containers) {
            std::hint::black_box(provision::prepare_task(&provided, task, container)?);
        }
        times.push(milliseconds(begun));
    }
    provision::release(&directory)?;
    Ok((once, times))
}

fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}
