//! The process of a bundle: its command, user, working directory, environment and privileges.

use indexmap::IndexMap;
use jobc_schema::plan::{EnvPlan, JobPlan, RolePlan};
use oci_spec::runtime::{Capability, PosixRlimit, PosixRlimitBuilder, PosixRlimitType, Process, User};

use crate::backend::tasks::Task;
use crate::backend::{Address, command, preflight, render};

use super::{capabilities, gpu, image};

/// The default `PATH`, unless the job or the image sets another one.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The placeholder for the image's own command until the image is available.
///
/// A bundle must have arguments, and running it before they are filled in must not look like success.
const NO_COMMAND: &str =
    "echo \"jobc: this bundle runs its image's own command; put it into process.args\" >&2; exit 127";

/// The process of a task.
pub(super) fn process(
    job: &JobPlan,
    role: &RolePlan,
    at: &dyn Address,
    env: &IndexMap<String, String>,
    held: &[Capability],
) -> Process {
    let known = image::known(job, role);
    let user = user(role.user.as_deref().or(known.user));
    let sets = capabilities::sets(held, user.uid());
    let mut process = Process::default();
    process
        .set_terminal(Some(false))
        .set_user(user)
        .set_args(Some(args(job, role, at, known.entrypoint)))
        .set_env(Some(env.iter().map(|(name, value)| format!("{name}={value}")).collect()))
        .set_cwd(role.workdir.as_deref().or(known.workdir).unwrap_or("/").into())
        .set_capabilities(Some(sets))
        .set_no_new_privileges(Some(!role.security.privileged))
        // The library's own default is 1,024 open files; limits are written only if the job requests them.
        .set_rlimits(rlimits(role));
    process
}

/// The whole argument list; the known part if the image's ENTRYPOINT is unknown.
fn args(job: &JobPlan, role: &RolePlan, at: &dyn Address, entrypoint: Option<&[String]>) -> Vec<String> {
    let own = command::argv(job, role)
        .map(|texts| preflight::before(job, role, texts))
        .map(|texts| texts.iter().map(|text| render(text, at)).collect::<Vec<_>>());
    match (own, entrypoint) {
        (Some(own), Some(entrypoint)) if command::keeps_entrypoint(role) => {
            [entrypoint.to_vec(), own].concat()
        }
        (Some(own), _) if !own.is_empty() => own,
        (_, Some(entrypoint)) if !entrypoint.is_empty() => entrypoint.to_vec(),
        _ => ["/bin/sh", "-c", NO_COMMAND].map(str::to_owned).to_vec(),
    }
}

/// The environment in the order PATH, jobc's own, the GPU vendor's, the user's; a later one replaces an earlier one.
///
/// Variables with a secret are left out; annotations name them.
pub(super) fn env(job: &JobPlan, task: Task<'_>, at: &dyn Address) -> IndexMap<String, String> {
    let mut env = IndexMap::from([("PATH".to_owned(), PATH.to_owned())]);
    env.extend(task.role.provided_env.iter().map(|(name, text)| (name.clone(), render(text, at))));
    env.extend(gpu::env(job, task).into_iter().map(|(name, value)| (name.to_owned(), value)));
    for (name, value) in &task.role.env {
        match value {
            EnvPlan::Text(text) => {
                env.insert(name.clone(), render(text, at));
            }
            EnvPlan::Secret { .. } => {
                env.shift_remove(name);
            }
        }
    }
    env
}

/// The user by number; a user by name is root here, since only the image knows names, and an annotation has the name.
fn user(written: Option<&str>) -> User {
    let mut user = User::default();
    if let Some((uid, gid)) = written.and_then(numbers) {
        user.set_uid(uid).set_gid(gid);
    }
    user
}

/// `1000:1000` or `1000`, whose group is 0 until the group is known from the image.
fn numbers(written: &str) -> Option<(u32, u32)> {
    let (user, group) = written.split_once(':').unwrap_or((written, "0"));
    Some((user.parse().ok()?, group.parse().ok()?))
}

fn rlimits(role: &RolePlan) -> Option<Vec<PosixRlimit>> {
    let limits = role.resources.ulimits.iter().filter_map(|(name, limit)| {
        let kind: PosixRlimitType = format!("RLIMIT_{}", name.to_ascii_uppercase()).parse().ok()?;
        // The largest number is RLIM_INFINITY.
        let number = limit.unwrap_or(u64::MAX);
        PosixRlimitBuilder::default().typ(kind).hard(number).soft(number).build().ok()
    });
    let limits: Vec<_> = limits.collect();
    (!limits.is_empty()).then_some(limits)
}
