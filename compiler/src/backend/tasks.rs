//! Tasks: the instances of all roles one by one, for the backends that write files for each.

use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, RolePlan};

use crate::backend::Context;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// The maximum number of tasks that files are written for.
///
/// Every task's environment lists the addresses of all others, and Linux takes at most 128 KiB in one variable; the
/// lists of 1,024 tasks with the longest names still fit.
pub const MAX_TASKS: u64 = 1024;

/// One instance of a role.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The role.
    pub role: &'a RolePlan,
    /// The instance's number within the role, from 0.
    pub index: u32,
}

impl Task<'_> {
    /// The task's name, `<role>-<index>`; unique within a job, because only the last part is a bare number.
    pub fn name(&self) -> String {
        format!("{}-{}", self.role.name, self.index)
    }

    /// The task's cgroup, as a path from the root of the tree; contracts "Bundle".
    pub fn cgroup_path(&self, job: &JobPlan) -> String {
        format!("/jobc/{}/{}", job.name, self.name())
    }
}

/// All tasks in the order of the file; none, with a finding, if there are more than [`MOST`].
pub fn tasks<'a>(job: &'a JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<Task<'a>> {
    let count: u64 = job.roles.iter().map(|role| u64::from(role.instances)).sum();
    if count > MAX_TASKS {
        sink.push(too_many(job, count, context.losses.allowed()));
        return vec![];
    }
    job.roles.iter().flat_map(|role| (0..role.instances).map(move |index| Task { role, index })).collect()
}

fn too_many(job: &JobPlan, count: u64, lossy: bool) -> Diagnostic {
    let message = format!(
        "the job has {count} tasks, but bundles and cgroup files are written for at most {MAX_TASKS} tasks"
    );
    let finding = if lossy {
        Diagnostic::warning(codes::TOO_MANY_TASKS, message)
    } else {
        Diagnostic::error(codes::TOO_MANY_TASKS, message)
    };
    let largest = job.roles.iter().max_by_key(|role| role.instances).filter(|role| role.instances > 1);
    let finding = match largest {
        Some(role) => finding.at(&role.at().key("instances"), format!("{} of them", role.instances)),
        None => finding.at_key(&Pointer::ROOT.key("roles"), format!("{} roles", job.roles.len())),
    };
    finding.note("build for a target of `backends: [kubernetes]`, whose files do not grow with the instances, or split the job")
}
