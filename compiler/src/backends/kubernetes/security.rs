//! A container's security context, and who it runs as.

use jobc_schema::plan::RolePlan;
use k8s_openapi::api::core::v1::{Capabilities, SeccompProfile, SecurityContext};

use super::origins::Origins;

/// The greatest user or group number that Kubernetes takes.
const MOST_ID: i64 = 2_147_483_647;

/// The security context of a role's container.
///
/// Unless the role asks for all privileges it gets no new ones, the engine's usual capabilities and its usual seccomp
/// profile (spec, "Role level", `security`); Kubernetes alone would leave seccomp off.
pub(super) fn security_context(role: &RolePlan, origins: &mut Origins) -> SecurityContext {
    let asked = &role.security;
    let at = role.at().key("security");
    let place = ["containers", "0", "securityContext"];
    let user = role.user.as_deref().and_then(|user| user_numbers(user).ok());
    let mut context = SecurityContext {
        run_as_user: user.map(|(user, _)| user),
        run_as_group: user.and_then(|(_, group)| group),
        ..SecurityContext::default()
    };
    if role.user.is_some() {
        origins.spec(place.into_iter().chain(["runAsUser"]), &role.at().key("user"));
    }
    if asked.privileged {
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
    if asked.read_only_root {
        context.read_only_root_filesystem = Some(true);
        origins.spec(place.into_iter().chain(["readOnlyRootFilesystem"]), &at.key("read_only_root"));
    }
    if let Some(capabilities) = &asked.capabilities {
        let list = |names: &Vec<String>| (!names.is_empty()).then(|| names.clone());
        context.capabilities =
            Some(Capabilities { add: list(&capabilities.add), drop: list(&capabilities.drop) });
        origins.spec(place.into_iter().chain(["capabilities"]), &at.key("capabilities"));
    }
    context
}

/// The numbers of `USER[:GROUP]`; the reason where it holds a name that only the image knows.
///
/// `root` is 0 in every image.
pub(super) fn user_numbers(user: &str) -> Result<(i64, Option<i64>), String> {
    let number = |text: &str| {
        match text {
        "root" => Ok(0),
        text => text.parse().ok().filter(|n| (0..=MOST_ID).contains(n)).ok_or_else(|| {
            format!(
                "Kubernetes takes users and groups by number and only the image knows who `{text}` is; write the number that `id {text}` prints in the image, such as `user: \"1000:1000\"`"
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
