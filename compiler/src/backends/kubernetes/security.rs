//! A container's security context, and who it runs as.

use jobc_schema::plan::RolePlan;
use k8s_openapi::api::core::v1::{Capabilities, SeccompProfile, SecurityContext};

use crate::stdlib::providers;

use super::gpu::PodRequest;
use super::origins::Origins;

/// The greatest user or group number that Kubernetes takes.
const MAX_ID: i64 = 2_147_483_647;

/// The security context of a role's container.
///
/// Unless the role asks for all privileges it gets no new ones, the engine's usual capabilities and its usual seccomp
/// profile (spec, "Role level", `security`); Kubernetes alone would leave seccomp off.
///
/// A GPU's provider or an RDMA device may need a user and capabilities of their own.
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
    let drop = requested.capabilities.as_ref().map_or(vec![], |capabilities| capabilities.drop.clone());
    if requested.capabilities.is_some() || !add.is_empty() {
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

/// The numbers of `USER[:GROUP]`; the reason where it holds a name that only the image knows.
///
/// `root` is 0 in every image.
pub(super) fn user_numbers(user: &str) -> Result<(i64, Option<i64>), String> {
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
        assert!(user_numbers("mpi").unwrap_err().contains("`id mpi`"));
        assert!(user_numbers("99999999999").is_err());
    }
}
