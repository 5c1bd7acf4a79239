//! `jobc plan`: prints the resolved plan: a summary for people, or all of it with all defaults.

mod acts;
mod header;
mod summary;

use camino::Utf8PathBuf;
use jobc_compiler::backend::Losses;
use jobc_compiler::compile::{build, plan, plan_json};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::emit;
use jobc_schema::plan::{GpuAmount, JobPlan};
use jobc_schema::{BackendName, Plan};

use crate::args::{FormatArg, PlanArgs};
use crate::input::Input;
use crate::outcome::Outcome;
use crate::settings::default_target;
use crate::{report, terminal};

/// Maximum number of further jobs of a matrix that a summary names.
const MAX_JOBS: usize = 10;

pub(crate) fn run(plan_args: &PlanArgs) -> Outcome {
    let mut input = match Input::read(&plan_args.job) {
        Ok(input) => input,
        Err(why) => return super::report_input_error(&why),
    };
    let to_job = |_: &str| Utf8PathBuf::from("../../..");
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let mut request = input.request(&plan_args.job, &to_job);
    request.default_target = default_target();
    let planned = plan(&mut sources, &request, &mut sink);
    let outcome = report::findings(&sources, sink, plan_args.format, true);
    let Some(mut planned) = planned else { return outcome };
    let for_people = matches!(plan_args.format, FormatArg::Text | FormatArg::Short);
    if plan_args.docker {
        let first = planned.jobs.first();
        terminal::print(&first.map(docker).unwrap_or_default());
        return outcome;
    }
    if for_people {
        let mut text = summarized(&planned.jobs);
        if let Some(first) =
            planned.jobs.iter().find(|job| job.target.settings.backends.contains(&BackendName::Slurm))
        {
            let name = first.name.clone();
            planned
                .jobs
                .retain(|job| job.name == name && job.target.settings.backends.contains(&BackendName::Slurm));
            // `jobc build` reports what the backends cannot express; `jobc submit` does some of that itself.
            request.losses = Losses::Drop;
            let outputs = build(&sources, planned, &request, &mut Sink::new());
            let headers = outputs.iter().map(|output| header::of_output(output, sources.get(input.job)));
            text.extend(headers);
        }
        terminal::print(&text);
        return outcome;
    }
    let plan = Plan { version: 1, jobs: planned.jobs };
    if plan_args.format == FormatArg::Json {
        terminal::print(&plan_json(&plan));
    } else {
        let value = serde_json::to_value(&plan).expect("a plan is plain JSON");
        terminal::print(&emit::to_yaml(&value));
    }
    outcome
}

/// The `docker run` commands of a job, one for each role.
fn docker(job: &JobPlan) -> String {
    let mut out = String::new();
    for role in &job.roles {
        out += &format!("# {}, instance 0 of {}\n", role.name, role.instances);
        let named = job.target.settings.oci.as_ref().is_some_and(|oci| oci.devices.is_some());
        if !named && role.gpus().is_some_and(|gpu| matches!(gpu.amount(), GpuAmount::Count(_))) {
            out += "# `jobc run` assigns free GPUs of the host; choose the numbers yourself here\n";
        }
        match jobc_compiler::docker::command(job, role) {
            Some(command) => out += &command,
            None => out += "# it runs on the files of the host, without a container image\n",
        }
    }
    out
}

/// The first job in full, and the names of the others of a matrix.
fn summarized(jobs: &[JobPlan]) -> String {
    let Some(first) = jobs.first() else { return String::new() };
    let targets = jobs.iter().filter(|job| job.name == first.name).map(|job| &*job.target.name);
    let mut out = summary::of_job(first, &targets.collect::<Vec<_>>(), terminal::columns_of_stdout());
    let mut others: Vec<&JobPlan> = Vec::new();
    for job in jobs.iter().filter(|job| job.name != first.name) {
        if !others.iter().any(|known| known.name == job.name) {
            others.push(job);
        }
    }
    if others.is_empty() {
        return out;
    }
    out += "\nother jobs of the matrix\n";
    for job in others.iter().take(MAX_JOBS) {
        let values: Vec<String> =
            job.matrix.iter().map(|(name, value)| format!("{name}={}", value.text)).collect();
        out += &format!("  {}  {}\n", job.name, values.join(" "));
    }
    if let Some(more) = others.len().checked_sub(MAX_JOBS).filter(|more| *more > 0) {
        out += &format!("  and {more} more\n");
    }
    out
}
