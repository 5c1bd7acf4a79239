//! Pod Security checks before submission: reports what the namespace would reject, at the lines of the job.
//!
//! The levels are those of the Pod Security Standards as pod-security-admission enforces them (its package `policy`). A
//! namespace only checks pods: it accepts a Job whose pods it then rejects, so the job would wait forever.

use jobc_schema::Pointer;
use jobc_schema::plan::RolePlan;
use jobc_schema::resources::Publish;
use jobc_schema::target::PodSecurity;
use serde_json::Value;

use crate::backend::{FilePart, PartSource};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::cluster::Cluster;
use super::object::Object;
use super::places::pods;

/// The capabilities that `baseline` lets a container add: the usual ones of container engines.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The capability that `restricted` lets a container add.
const RESTRICTED_CAPABILITY: &str = "NET_BIND_SERVICE";

/// The kinds of volumes that `restricted` lets a pod have.
const RESTRICTED_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// A part of a pod that the namespace rejects.
struct Violation {
    /// Its place in the object.
    part: Pointer,
    /// What is rejected, as in "forbids ...".
    what: String,
    /// What to write instead.
    instead: String,
    /// Whether the job's `user` decides it.
    of_user: bool,
}

/// Whether the target names a level with any restrictions.
pub(super) fn is_enforced(cluster: &Cluster<'_>) -> bool {
    cluster.settings.pod_security.is_some_and(|level| level != PodSecurity::Privileged)
}

/// Reports the parts of pods that the namespace of the target would reject.
pub(super) fn check(cluster: &Cluster<'_>, objects: &[Object], sink: &mut Sink) {
    let Some(level) = cluster.settings.pod_security.filter(|level| *level != PodSecurity::Privileged) else {
        return;
    };
    for object in objects {
        for (at, spec, role) in pods(cluster, object) {
            let mut found = vec![];
            of_pod(level, &at, spec, &mut found);
            for violation in found {
                sink.push(diagnostic(cluster, level, object, role, &violation));
            }
        }
    }
}

fn of_pod(level: PodSecurity, at: &Pointer, spec: &Value, found: &mut Vec<Violation>) {
    let mut refuse = |part: Pointer, what: &str, instead: &str| {
        found.push(Violation { part, what: what.to_owned(), instead: instead.to_owned(), of_user: false });
    };
    if spec["hostNetwork"] == true {
        refuse(at.key("hostNetwork"), "the network of the host", "leave `network: host` out");
    }
    for (key, what) in
        [("hostIPC", "the IPC namespace of the host"), ("hostPID", "the processes of the host")]
    {
        if spec[key] == true {
            refuse(at.key(key), what, "use another `gpu.provider`, or leave the patch out");
        }
    }
    for (i, volume) in spec["volumes"].as_array().into_iter().flatten().enumerate() {
        let part = at.key("volumes").index(i);
        let kind = volume.as_object().and_then(|map| map.keys().find(|key| *key != "name"));
        match kind.map(String::as_str) {
            Some("hostPath")
                if volume["name"].as_str().is_some_and(|name| name.starts_with("jobc-device-")) =>
            {
                refuse(part, "devices of the host", "write the resource of a device plug-in in `devices`");
            }
            Some("hostPath") => refuse(part, "directories of the host", "write `{pvc: NAME}` in `storage`"),
            Some(kind) if level == PodSecurity::Restricted && !RESTRICTED_VOLUMES.contains(&kind) => {
                refuse(
                    part,
                    &format!("`{kind}` volumes"),
                    "write `{pvc: NAME}` in `storage` with a claim of the same data",
                );
            }
            _ => {}
        }
    }
    for list in ["initContainers", "containers"] {
        for (i, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            of_container(level, &at.key(list).index(i), spec, container, found);
        }
    }
}

fn of_container(
    level: PodSecurity,
    at: &Pointer,
    spec: &Value,
    container: &Value,
    found: &mut Vec<Violation>,
) {
    let mut refuse = |part: Pointer, what: &str, instead: &str, of_user: bool| {
        found.push(Violation { part, what: what.to_owned(), instead: instead.to_owned(), of_user });
    };
    for (i, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        if port["hostPort"].as_u64().is_some_and(|port| port > 0) {
            refuse(
                at.key("ports").index(i).key("hostPort"),
                "ports of the host",
                "let a Service publish the port",
                false,
            );
        }
    }
    let own = &container["securityContext"];
    let place = at.key("securityContext");
    // Of the container, else of its pod.
    let value = |key: &str| if own[key].is_null() { &spec["securityContext"][key] } else { &own[key] };
    if own["privileged"] == true {
        refuse(place.key("privileged"), "privileged containers", "leave `privileged` out", false);
        return;
    }
    let restricted = level == PodSecurity::Restricted;
    let listed = |list: &str| {
        own["capabilities"][list]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
    };
    let allowed = |name: &str| {
        if restricted { name == RESTRICTED_CAPABILITY } else { BASELINE_CAPABILITIES.contains(&name) }
    };
    for name in listed("add").into_iter().filter(|name| !allowed(name.trim_start_matches("CAP_"))) {
        refuse(
            place.keys(["capabilities", "add"]),
            &format!("the capability `{name}`"),
            "leave it out, or what needs it: `rdma` and some GPU providers do",
            false,
        );
    }
    if value("seccompProfile")["type"] == "Unconfined" || own["procMount"] == "Unmasked" {
        refuse(
            place.clone(),
            "containers without the engine's seccomp profile or masks",
            "leave the patch out",
            false,
        );
    }
    if !restricted {
        return;
    }
    match value("runAsUser").as_i64() {
        Some(0) => refuse(place.key("runAsUser"), "user 0", "write a user above 0", true),
        Some(_) => {}
        None => refuse(
            place.key("runAsUser"),
            "containers whose image decides the user",
            "write a user above 0",
            true,
        ),
    }
    if value("runAsUser").as_i64().is_some_and(|user| user > 0) && value("runAsNonRoot") != true {
        refuse(
            place.key("runAsNonRoot"),
            "containers without `runAsNonRoot: true`",
            "leave the patch out",
            false,
        );
    }
    let drops_all =
        listed("drop").contains(&"ALL") || value("runAsUser").as_i64().is_none_or(|user| user == 0);
    if own["allowPrivilegeEscalation"] != false || !drops_all || value("seccompProfile")["type"].is_null() {
        refuse(
            place,
            "containers without `allowPrivilegeEscalation: false`, `drop: [ALL]` and a seccomp profile",
            "leave the patch out",
            false,
        );
    }
}

/// The finding, at what causes the part: a line of the job, a setting of the target, or the role.
fn diagnostic(
    cluster: &Cluster<'_>,
    level: PodSecurity,
    object: &Object,
    role: Option<&RolePlan>,
    violation: &Violation,
) -> Diagnostic {
    let covers = |part: &Pointer| {
        let rest = violation.part.as_str().strip_prefix(part.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let cause = object
        .origins
        .iter()
        .filter_map(|origin| match &origin.part {
            FilePart::Pointer(part) if covers(part) => Some((part.as_str().len(), &origin.from)),
            _ => None,
        })
        .max_by_key(|(length, _)| *length);
    // A place of the whole job is reported once.
    let of_job = matches!(cause, Some((_, PartSource::Spec(at))) if !at.as_str().starts_with("/roles/"));
    let of_role =
        role.filter(|_| !of_job).map_or_else(String::new, |role| format!(" in role `{}`", role.name));
    let message = format!(
        "`pod_security: {level}` of target `{}` forbids {}{of_role}",
        cluster.job.target.name, violation.what
    );
    let mut found = Diagnostic::error(codes::KUBERNETES_POD_SECURITY, message);
    let published = role.and_then(|role| role.ports.iter().find(|port| port.publish == Publish::Host));
    found = match (cause, role, published) {
        (Some((_, PartSource::Spec(at))), ..) => found.at_key(at, ""),
        (Some((_, PartSource::Target(at))), ..) => {
            let keys: Vec<String> = at.segments().collect();
            let target = Pointer::ROOT.keys(["targets", &cluster.job.target.name]);
            found.at_place(Location::target(&target.keys(keys.iter().map(String::as_str))), "")
        }
        (_, Some(role), Some(port)) if violation.part.as_str().ends_with("/hostPort") => {
            found.at_key(&role.at().keys(["resources", "ports", &port.label]), "")
        }
        (_, Some(role), _) => found.at_key(&role.at(), ""),
        _ => found.at_key(&Pointer::ROOT.key("name"), ""),
    };
    if let Some(role) = role.filter(|_| violation.of_user) {
        found = found.set(&role.at().key("user"), "1000:1000");
    }
    found
        .note(format!("{}; the cluster would create no pod", violation.instead))
        .note("`pod_security` of the target is the level that its namespace enforces")
}
