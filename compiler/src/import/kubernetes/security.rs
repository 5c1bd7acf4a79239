//! `securityContext` of pods and containers.

use crate::document::{Node, Value};

use super::super::container::capability;
use super::super::nodes::string;
use super::super::values::{text_at, texts};
use super::reader::Pod;
use super::rows::{Fields, Row, changed, field, note};

const PROFILE: &str = "the profiles are those of jobc";

/// The fields of `securityContext`, of pods and of containers.
pub(super) const SECURITY: &[Row] = &[
    field("allowPrivilegeEscalation", "nothing for `false`: the default"),
    note("appArmorProfile", PROFILE),
    field("capabilities.add", "`security.capabilities.add`"),
    field("capabilities.drop", "`security.capabilities.drop`"),
    changed(
        "fsGroup",
        "the group of the files in volumes is not changed",
        "write the group of the files as `user: \"USER:GROUP\"`",
    ),
    note("fsGroupChangePolicy", "it is about `fsGroup`"),
    field("privileged", "`security.privileged`"),
    note("procMount", PROFILE),
    field("readOnlyRootFilesystem", "`security.read_only_root`"),
    field("runAsGroup", "`user`"),
    note("runAsNonRoot", "jobc writes it for a `user` above 0"),
    field("runAsUser", "`user`"),
    note("seLinuxChangePolicy", "jobc sets no label of SELinux"),
    note("seLinuxOptions", "jobc sets no label of SELinux"),
    field("seccompProfile.type", "nothing: the profiles are those of jobc"),
    note("seccompProfile.localhostProfile", PROFILE),
    changed(
        "supplementalGroups",
        "further groups of the process",
        "write the group as `user: \"USER:GROUP\"`",
    ),
    note("supplementalGroupsPolicy", "it is about `supplementalGroups`"),
    changed("sysctls", "settings of the kernel are not made", "set them on the nodes"),
    note("windowsOptions", "of Windows"),
];

/// Reads that of a container.
pub(super) fn of_container(pod: &mut Pod<'_, '_, '_>, node: &Node) {
    read(pod, node);
    let of_pod = pod.spec.get("securityContext");
    let of = |key: &str| text_at(node, key).or_else(|| of_pod.and_then(|all| text_at(all, key)));
    user(pod, node, of("runAsUser"), of("runAsGroup"));
}

/// Reads that of a pod; the one of its container is read later, or earlier.
pub(super) fn of_pod(pod: &mut Pod<'_, '_, '_>, node: &Node) {
    read(pod, node);
    if pod.role.get(&["user"]).is_none() {
        user(pod, node, text_at(node, "runAsUser"), text_at(node, "runAsGroup"));
    }
}

fn user(pod: &mut Pod<'_, '_, '_>, node: &Node, user: Option<String>, group: Option<String>) {
    let text = match (user, group) {
        (Some(user), Some(group)) => format!("{user}:{group}"),
        (Some(user), None) => user,
        (None, _) => return,
    };
    let path = ["roles", pod.role.name, "user"];
    pod.role.draft.set(&path, node.span, string(node.span, text));
}

fn read(pod: &mut Pod<'_, '_, '_>, node: &Node) {
    let role = pod.role.name;
    let fields = Fields { of: "`securityContext`", tables: &[("", SECURITY)], elsewhere: &[] };
    let mut entries = Vec::new();
    fields.read(node, pod.role.draft, &mut |_, row, entry| entries.push((row.path, entry.clone())));
    for (path, entry) in entries {
        let (part, value) = (entry.key_span, &entry.value);
        let is_on = value.value == Value::Bool(true);
        match path {
            "capabilities.add" | "capabilities.drop" => {
                let verb = path.rsplit('.').next().unwrap_or_default();
                for (name, part) in texts(value) {
                    capability(&mut pod.role, verb, &name, part);
                }
            }
            "privileged" if is_on => pod.role.field(&["security", "privileged"], part, value.clone()),
            "readOnlyRootFilesystem" if is_on => {
                pod.role.field(&["security", "read_only_root"], part, value.clone());
            }
            "runAsGroup" if node.get("runAsUser").is_none() => pod.role.draft.changed(
                part,
                "the group alone is not set",
                "write both as `user: \"USER:GROUP\"`",
            ),
            "runAsUser" | "runAsGroup" => pod.role.draft.account.field(part, format!("roles.{role}.user")),
            "allowPrivilegeEscalation" if is_on => pod.role.draft.changed(
                part,
                "a job's programs get no further privileges",
                "`security: {privileged: true}` gives all of them",
            ),
            "seccompProfile.type" if value.as_str() == Some("Unconfined") => pod.role.draft.changed(
                part,
                "the seccomp profile is that of jobc, not `Unconfined`",
                "most programs need no other; a debugger needs `security: {capabilities: {add: [SYS_PTRACE]}}`",
            ),
            _ => pod.role.draft.note(part, "the default"),
        }
    }
}
