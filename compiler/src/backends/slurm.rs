//! Backend `slurm`: batch scripts for a Slurm cluster.
//!
//! `job.sbatch`, or one such script for each group of roles that Slurm schedules on its own; where jobc runs the tasks of
//! such a script, `roles/<role>.sh`, which each task of a role runs; `submit.sh` where one `sbatch` is not enough;
//! `array.sbatch` for a matrix. Every instance gets its own share of a node, so its address is that of its node.
//! docs/reference/slurm.md has the table of fields.

mod array;
mod batch;
mod bundle;
mod code;
mod command;
mod contained;
mod direct;
mod form;
mod gpu;
mod group;
mod header;
mod limit;
mod node;
mod parts;
mod ports;
mod role;
mod run;
mod settings;
mod shell;
mod step;
mod submit;
mod support;
#[cfg(test)]
mod tests;
mod text;
mod volumes;

use jobc_schema::plan::JobPlan;
use jobc_schema::target::SlurmTarget;
use jobc_schema::{BackendName, Pointer};

use crate::backend::{Backend, Capability, Context, File, Support};
use crate::diagnostic::Sink;

use form::Form;
use group::Group;
use parts::Parts;
use ports::Ports;

/// Writes batch scripts for Slurm.
#[derive(Debug)]
pub struct SlurmBackend;

impl Backend for SlurmBackend {
    fn name(&self) -> BackendName {
        BackendName::Slurm
    }

    fn about(&self) -> &'static str {
        "Slurm batch scripts, one step a role"
    }

    fn support(&self, capability: Capability, job: &JobPlan) -> Support {
        support::support(capability, &Pointer::ROOT, job)
    }

    fn support_at(&self, capability: Capability, place: &Pointer, job: &JobPlan) -> Support {
        support::support(capability, place, job)
    }

    fn lower(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<File> {
        let settings = parts::settings(job);
        let groups = checked(job, &settings, context, sink);
        let parts = Parts { job, settings: &settings, ports: Ports::of(job), context };
        let mut files = vec![];
        for group in &groups {
            files.push(batch::script(&parts, &groups, group));
            if let Form::Node(_) = form::of(&parts, &groups, group) {
                files.extend(node::files(&parts, group));
            }
        }
        files.extend(run::remote_shell(&parts));
        files.extend(File::code(job, context));
        let array = array::array(&parts, &groups);
        files.extend(submit::script(&parts, &groups, array.as_ref()));
        files.extend(array.map(|array| array.script));
        files
    }

    fn check(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) {
        checked(job, &parts::settings(job), context, sink);
    }
}

/// The groups that scripts are written for; none where something is wrong.
fn checked<'a>(
    job: &'a JobPlan,
    settings: &SlurmTarget,
    context: &Context<'_>,
    sink: &mut Sink,
) -> Vec<Group<'a>> {
    let before = sink.error_count();
    settings::check(job, settings, sink);
    header::check_amounts(job, settings, sink);
    run::check_images(job, settings, sink);
    volumes::check(job, settings, context, sink);
    array::check(job, context, sink);
    if sink.error_count() > before {
        return vec![];
    }
    let groups = group::groups(job, settings);
    let parts = Parts { job, settings, ports: Ports::of(job), context };
    if groups.iter().any(|group| form::has_container(&parts, &groups, group)) {
        settings::check_bundles(job, settings, sink);
    }
    if sink.error_count() > before {
        return vec![];
    }
    form::check(&parts, &groups, sink);
    groups
}
