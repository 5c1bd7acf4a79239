//! Whether an unprivileged user who starts a job is root in its containers, has the same ids as outside, or is the user
//! of the tasks.
//!
//! On the files of the host they are the same user: those files name owners of the host. The files of an image belong
//! to the image's own users, of whom root is the one that every image has. Tasks that run as another user of the image
//! write files to the host as well, and these belong to the caller.

use jobc_container::bundle::Bundle;
use jobc_container::rootless::Caller;
use jobc_schema::job::Network;
use jobc_schema::plan::{ImageSource, JobPlan, ProbePlan, RolePlan};
use oci_spec::runtime::Process;

use crate::shared_memory;
use crate::submission::Submission;
use jobc_sys::host::needs_user_namespace;
use jobc_sys::id::EVERY_ROLE;

/// Whom the caller is in the containers of a role.
///
/// Containers that share a user namespace have the same ids. An sshd, which logs its users in, is root.
pub(crate) fn of_role(plan: &JobPlan, submission: &Submission, role: &RolePlan) -> Caller {
    let has_ssh = plan.distributed.as_ref().is_some_and(|distributed| distributed.ssh.is_some());
    let of_host = |role: &RolePlan| role.user.is_none() && is_on_host(plan, submission, role);
    let is_unchanged =
        if shares_user_namespace(plan) { plan.roles.iter().all(of_host) } else { of_host(role) };
    caller(is_unchanged && !has_ssh)
}

/// Whom the caller is in the container of a single bundle, whose root the command line may name.
pub(crate) fn of_bundle(bundle: &Bundle, choice: Option<&str>) -> Caller {
    let has = |key| bundle.annotation(key).is_some();
    let is_on_host =
        bundle.annotation("dev.jobc.image") == Some("host") && choice.is_none_or(|choice| choice == "host");
    caller(is_on_host && !has("dev.jobc.user") && !has("dev.jobc.ssh"))
}

/// The home directory of a process that runs as its caller, whom a directory service may know and not the host's
/// /etc/passwd.
pub(crate) fn set_home(process: &mut Process, home: Option<&str>) {
    let env = process.env_mut().get_or_insert_default();
    let is_set = env.iter().any(|variable| variable.starts_with("HOME="));
    env.extend(home.filter(|home| !is_set && home.starts_with('/')).map(|home| format!("HOME={home}")));
}

/// Whether the caller, without privileges, can be the user of a role in its containers instead of root: they do not
/// share the ids of others, and no sshd, which is root, logs that user in.
pub(crate) fn can_be_user(plan: &JobPlan) -> bool {
    let has_ssh = plan.distributed.as_ref().is_some_and(|distributed| distributed.ssh.is_some());
    let is_unprivileged = needs_user_namespace() && !rustix::process::geteuid().is_root();
    is_unprivileged && !has_ssh && !shares_user_namespace(plan)
}

fn caller(is_unchanged: bool) -> Caller {
    // Root of a container without CAP_SYS_ADMIN needs a user namespace too.
    let is_unprivileged = needs_user_namespace() && !rustix::process::geteuid().is_root();
    if is_unchanged && is_unprivileged { Caller::IsUnchanged } else { Caller::IsRoot }
}

/// Whether a role has `image: host` and the command line names no other root.
fn is_on_host(plan: &JobPlan, submission: &Submission, role: &RolePlan) -> bool {
    let roots = &submission.roots;
    let choice = roots.get(&role.name).or_else(|| roots.get(EVERY_ROLE));
    plan.image_of(role).is_some_and(|image| matches!(image.source, ImageSource::Host { .. }))
        && choice.is_none_or(|choice| choice == "host")
}

/// Whether a process holds namespaces of the tasks, so that without privileges their containers share its user namespace.
pub(crate) fn shares_user_namespace(plan: &JobPlan) -> bool {
    has_networks(plan) || shared_memory::has_job(plan)
}

/// Whether that process holds the tasks' networks.
pub(crate) fn has_networks(plan: &JobPlan) -> bool {
    plan.network == Network::Job || plan.network == Network::None && is_probed(plan)
}

/// Whether a role's readiness is a port that must be connected to.
fn is_probed(plan: &JobPlan) -> bool {
    let probes = plan.roles.iter().filter_map(|role| role.ready.as_ref());
    probes.into_iter().any(|ready| matches!(ready.probe, ProbePlan::Port(_) | ProbePlan::Http { .. }))
}
