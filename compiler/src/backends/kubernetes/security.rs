//! A container's security context, and the user that it runs as.

use jobc_schema::plan::{JobPlan, RolePlan};
use k8s_openapi::api::core::v1::{Capabilities, SeccompProfile, SecurityContext, Volume};

use crate::backend::Unsupported;
use crate::stdlib::providers;

use super::gpu::PodRequest;
use super::origins::Origins;
use super::settings::settings;
use super::volumes::volume;

/// The maximum user or group ID that Kubernetes accepts.
const MAX_ID: i64 = 2_147_483_647;

/// The security context of a role's container.
///
/// Unless the role requests all privileges, it gets no new ones, the engine's usual capabilities and its usual seccomp
/// profile (spec, "Role level", `security`); Kubernetes alone would leave seccomp off. A user above 0 could use none of
/// those capabilities, so they are dropped, as the level `restricted` of the Pod Security Standards demands.
///
/// A GPU provider or an RDMA device may need its own user and capabilities.
pub(super) fn security_context(
    role: &RolePlan,
    given: Option<&PodRequest>,
    origins: &mut Origins,
) -> SecurityContext {
    let requested = &role.security;
    let at = role.at().key("security");
    let place = ["containers", "0", "securityContext"];
    let user = role.user.as_deref().and_then(|user| user_numbers(user).ok());
    let mut context = SecurityContext {
        run_as_user: user.map(|(user, _)| user),
        run_as_group: user.and_then(|(_, group)| group),
        ..SecurityContext::default()
    };
    if let (None, Some(number)) = (&role.user, given.and_then(|given| given.run_as_user)) {
        context.run_as_user = Some(number);
        origins.spec(place.into_iter().chain(["runAsUser"]), &role.at().keys(["resources", "gpu"]));
    }
    if role.user.is_some() {
        origins.spec(place.into_iter().chain(["runAsUser"]), &role.at().key("user"));
    }
    if requested.privileged {
        context.privileged = Some(true);
        origins.spec(place.into_iter().chain(["privileged"]), &at.key("privileged"));
    } else {
        context.allow_privilege_escalation = Some(false);
        context.seccomp_profile =
            Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None });
        origins.fallback(
            place.into_iter().chain(["allowPrivilegeEscalation"]),
            "the default of jobc: no new privileges",
        );
        origins.fallback(
            place.into_iter().chain(["seccompProfile"]),
            "the default of jobc: the engine's seccomp profile",
        );
    }
    if requested.read_only_root {
        context.read_only_root_filesystem = Some(true);
        origins.spec(place.into_iter().chain(["readOnlyRootFilesystem"]), &at.key("read_only_root"));
    }
    let unprivileged = !requested.privileged && context.run_as_user.is_some_and(|user| user > 0);
    if unprivileged {
        context.run_as_non_root = Some(true);
        origins.fallback(
            place.into_iter().chain(["runAsNonRoot"]),
            "the default of jobc: the user is not root, which Pod Security asks to be said",
        );
    }
    let list = |names: Vec<String>| (!names.is_empty()).then_some(names);
    let mut add = requested.capabilities.as_ref().map_or(vec![], |capabilities| capabilities.add.clone());
    for (name, key) in of_devices(role, given) {
        // A privileged container has them all.
        if !requested.privileged && !add.contains(name) {
            add.push(name.clone());
            origins
                .spec(place.into_iter().chain(["capabilities", "add"]), &role.at().keys(["resources", key]));
        }
    }
    let mut drop = requested.capabilities.as_ref().map_or(vec![], |capabilities| capabilities.drop.clone());
    if unprivileged {
        // With no new privileges, no program of this user can gain them.
        drop = vec!["ALL".to_owned()];
        origins.fallback(
            place.into_iter().chain(["capabilities", "drop"]),
            "the default of jobc: a user above 0 has no capabilities",
        );
    }
    if requested.capabilities.is_some() || !add.is_empty() || unprivileged {
        context.capabilities = Some(Capabilities { add: list(add), drop: list(drop) });
    }
    if requested.capabilities.is_some() {
        origins.spec(place.into_iter().chain(["capabilities"]), &at.key("capabilities"));
    }
    context
}

/// The capabilities that a role's devices need, and the key of `resources` that asks for them.
fn of_devices<'a>(
    role: &RolePlan,
    given: Option<&'a PodRequest>,
) -> impl Iterator<Item = (&'a String, &'static str)> {
    let rdma: &'static [String] = if role.resources.rdma.is_some_and(|n| n > 0) {
        &providers::table().rdma.linux_capabilities
    } else {
        &[]
    };
    let gpu = given.map_or(&[][..], |given| given.linux_capabilities);
    rdma.iter().map(|name| (name, "rdma")).chain(gpu.iter().map(|name| (name, "gpu")))
}

/// The group by which a role's user can read files that belong to root and are not for all; `None` if none is needed,
/// and the reason if a group does not help.
///
/// The kubelet gives files of ConfigMaps and Secrets the group `fsGroup` and lets it read them (`SetVolumeOwnership` of
/// k8s.io/kubernetes, pkg/volume), but does the same to all files of a claim.
pub(super) fn file_group(job: &JobPlan, role: &RolePlan) -> Result<Option<i64>, Unsupported> {
    let user = role.user.as_deref().and_then(|user| user_numbers(user).ok());
    let Some((user, group)) = user.filter(|(user, _)| *user > 0) else { return Ok(None) };
    let provided = |name: &str| {
        let plan = job.volumes.get(name)?;
        volume(name, plan, settings(job)).ok()
    };
    let has = |of: fn(&Volume) -> bool| {
        role.mounts.iter().find(|mount| provided(&mount.volume).is_some_and(|volume| of(&volume)))
    };
    let claim = has(|volume| volume.persistent_volume_claim.is_some());
    let mut own = role.files.iter().filter(|file| !file.is_for_all()).peekable();
    if own.peek().is_none() {
        // A new claim belongs to root.
        let is_new = claim.is_none() && has(|volume| volume.ephemeral.is_some()).is_some();
        return Ok(is_new.then(|| group.unwrap_or(user)));
    }
    if own.any(|file| file.mode & 0o101 == 0o100) {
        return Err(
            "files of a pod belong to root, and its `fsGroup` lets the user read them but not execute them; write `mode: \"0755\"`"
                .into(),
        );
    }
    if let Some(mount) = claim {
        return Err(format!(
            "files of a pod belong to root; its `fsGroup` would let the user read them, but would change the group of all files of the claim of `{}`; write `mode: \"0644\"`",
            mount.volume
        ).into());
    }
    Ok(Some(group.unwrap_or(user)))
}

/// The numbers of `USER[:GROUP]`; the reason where it holds a name that only the image knows.
///
/// `root` is 0 in every image.
pub(super) fn user_numbers(user: &str) -> Result<(i64, Option<i64>), Unsupported> {
    let number = |text: &str| {
        match text {
        "root" => Ok(0),
        text => text.parse().ok().filter(|n| (0..=MAX_ID).contains(n)).ok_or_else(|| {
            format!(
                "Kubernetes needs numeric users and groups, and only the image defines `{text}`; write the number that `id {text}` prints in the image, such as `user: \"1000:1000\"`"
            )
        }),
    }
    };
    match user.split_once(':') {
        Some((user, group)) => Ok((number(user)?, Some(number(group)?))),
        None => Ok((number(user)?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::user_numbers;

    #[test]
    fn users_are_numbers() {
        assert_eq!(user_numbers("1000:100"), Ok((1000, Some(100))));
        assert_eq!(user_numbers("root"), Ok((0, None)));
        assert!(user_numbers("mpi").unwrap_err().0.contains("`id mpi`"));
        assert!(user_numbers("99999999999").is_err());
    }
}
