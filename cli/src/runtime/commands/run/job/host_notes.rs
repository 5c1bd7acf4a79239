//! What this host lacks to run a job that has no errors, for `jobc check`.
//!
//! The checks are those of `jobc run`, before anything is pulled, built or started.

use std::cell::OnceCell;
use std::path::Path;

use indexmap::IndexSet;
use jobc_compiler::compile::{Request, plan};
use jobc_compiler::diagnostic::{Severity, Sink};
use jobc_compiler::source::Sources;
use jobc_gpu::Host;
use jobc_gpu::demand::Demands;
use jobc_gpu::nvml::Freshness;
use jobc_gpu::step::usable_inventory;
use jobc_image::source;
use jobc_job::admission;
use jobc_job::admission::capacity::Capacity;
use jobc_job::admission::claim;
use jobc_job::directory::JobDirectories;
use jobc_job::host_environment::{Caller, HostEnvironments};
use jobc_job::provision;
use jobc_job::submission::Submission;
use jobc_job::supervisor::missing_on_host;
use jobc_schema::plan::{ImageSource, JobPlan};
use jobc_sys::error::{Error, Result};

use super::images::at_image_field;

/// A note for each reason why `jobc run` would fail on this host. `planned` are the jobs of the request for any host, and
/// `directory` is that of the job file.
pub(crate) fn host_notes(
    mut sources: Sources,
    request: Request<'_>,
    planned: Vec<JobPlan>,
    directory: &Path,
) -> Vec<String> {
    let mut notes = IndexSet::new();
    let found = OnceCell::new();
    let inventory = || found.get_or_init(|| usable_inventory(&Host::here(), Freshness::Facts));
    let to_target = || inventory().to_target_gpus();
    let mut jobs = planned;
    // Only a job that requests GPUs is planned again with those of this host: asking for them starts a program.
    if jobs.iter().any(Demands::requests_gpus) {
        let mut sink = Sink::new();
        let here = Request { run_here: true, gpus_here: Some(&to_target), ..request };
        match plan(&mut sources, &here, &mut sink) {
            Some(planned) => jobs = planned.jobs,
            None => jobs.iter_mut().flat_map(|job| &mut job.roles).for_each(|role| role.resources.gpu = None),
        }
        let errors = sink.finish().into_iter().filter(|finding| finding.severity == Severity::Error);
        notes.extend(errors.map(|finding| note(&finding.message, finding.notes.first().map(String::as_str))));
    }
    let capacity = capacity();
    let caller = Caller::of_process(std::env::current_dir().ok());
    for job in &jobs {
        let images = job.images.values().filter_map(|image| match &image.source {
            ImageSource::File { path } => {
                source::status(&directory.join(path)).err().map(|error| at_image_field(image, error))
            }
            _ => None,
        });
        let mut errors: Vec<Error> = images.collect();
        errors.extend(provision::check_data(job, directory).err());
        match HostEnvironments::read(job, &caller) {
            Ok(environments) => errors.extend(missing_on_host(job, &environments)),
            Err(error) => errors.push(error),
        }
        if Demands::requests_gpus(job) {
            let placed = admission::dry_run_gpus(job, &Submission::default(), inventory().clone());
            errors.extend(placed.err());
        }
        let exceeds = |capacity| admission::exceeds_capacity(job, &claim::of(job), capacity);
        errors.extend(capacity.as_ref().ok().and_then(exceeds));
        notes.extend(errors.iter().map(|error| note(&error.to_string(), error.advice().as_deref())));
    }
    notes.into_iter().collect()
}

/// The resources of this host; its disk is that of the first directory that exists where the state of jobs will be.
fn capacity() -> Result<Capacity> {
    let state = JobDirectories::standard()?.state;
    Capacity::of_host(state.ancestors().find(|directory| directory.is_dir()).unwrap_or(Path::new("/")))
}

fn note(message: &str, help: Option<&str>) -> String {
    let help = help.map(|help| format!(" = help: {help}\n")).unwrap_or_default();
    format!("note: `jobc run` would fail on this host: {message}\n{help}")
}
