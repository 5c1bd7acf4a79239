//! Device nodes of `resources.devices`: a cluster hands them out as resources of device plug-ins.
//!
//! A path of the node can be mounted as well, but the device cgroup of a container refuses to open what is not its own, so
//! that needs a privileged container.

use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::target::PodSettings;

use crate::backend::Support;

use super::settings::{RoleSettings, settings};

/// What the target writes for the node's own path.
const HOST_PATH: &str = "hostPath";

/// The resource by which a pod gets a device, if it is one.
pub(super) fn resource<'p>(pod: &'p PodSettings, path: &str) -> Option<&'p str> {
    pod.devices.get(path).map(String::as_str).filter(|given| *given != HOST_PATH)
}

/// The devices of a role that are mounted from the node.
pub(super) fn mounted<'r>(
    pod: &PodSettings,
    role: &'r RolePlan,
) -> impl Iterator<Item = (usize, &'r String)> {
    let is_mounted = |path: &String| pod.devices.get(path).is_some_and(|given| given == HOST_PATH);
    role.resources.devices.iter().enumerate().filter(move |(_, path)| is_mounted(path))
}

/// Whether a pod of a role gets the device at a place of the job.
pub(super) fn support(job: &JobPlan, role: &RolePlan, place: &Pointer) -> Support {
    let number = place.last().and_then(|number| number.parse::<usize>().ok());
    let Some(path) = number.and_then(|number| role.resources.devices.get(number)) else {
        return Support::Full;
    };
    let pod = RoleSettings::of(settings(job), role).pod;
    match pod.devices.get(path).map(String::as_str) {
        Some(HOST_PATH) if !role.security.privileged => Support::None(format!(
            "`hostPath` of the target mounts `{path}`, which only a privileged container may open; write `security: {{privileged: true}}`, or the resource of a device plug-in in the target"
        )),
        Some(_) => Support::Full,
        None => Support::None(format!(
            "the target does not say what gives pods `{path}`; write the resource of its device plug-in under `kubernetes` of the target, as in `devices: {{{path}: example.com/{}}}`, or `hostPath` for privileged roles",
            path.rsplit('/').next().unwrap_or_default()
        )),
    }
}
