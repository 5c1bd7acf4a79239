//! The engine of the container that this process is in, and the options with which it allows containers inside.

use std::path::Path;

/// The engine of the container that this process runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A development container: its editor starts it with the options of devcontainer.json.
    DevContainer,
    /// A container of a Kubernetes pod.
    Kubernetes,
    /// podman.
    Podman,
    /// Docker.
    Docker,
    /// Something else, such as LXC or a service of systemd with a filter of syscalls.
    Other,
}

/// Variables that editors set in development containers.
const DEV_CONTAINER_VARIABLES: [&str; 3] = ["REMOTE_CONTAINERS", "CODESPACES", "DEVCONTAINER"];

/// Where Kubernetes mounts the account of a pod.
const SERVICE_ACCOUNTS: [&str; 2] = ["/run/secrets/kubernetes.io", "/var/run/secrets/kubernetes.io"];

impl Engine {
    /// The engine that this process runs in; `None` if it cannot be detected.
    pub fn around() -> Option<Self> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self::of(&is_set, &|path| Path::new(path).exists())
    }

    /// The same, from variables that are set and not empty, and paths that exist.
    pub fn of(is_set: &dyn Fn(&str) -> bool, exists: &dyn Fn(&str) -> bool) -> Option<Self> {
        match () {
            () if DEV_CONTAINER_VARIABLES.into_iter().any(is_set) => Some(Self::DevContainer),
            () if is_set("KUBERNETES_SERVICE_HOST") => Some(Self::Kubernetes),
            () if SERVICE_ACCOUNTS.into_iter().any(exists) => Some(Self::Kubernetes),
            () if exists("/run/.containerenv") => Some(Self::Podman),
            () if exists("/.dockerenv") => Some(Self::Docker),
            // Container Interface of systemd: every manager sets it for the first process.
            () if is_set("container") || exists("/run/systemd/container") => Some(Self::Other),
            () => None,
        }
    }

    /// The name of the outer container in a message.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::DevContainer => "this development container",
            Self::Kubernetes => "this pod",
            Self::Podman => "this podman container",
            Self::Docker => "this Docker container",
            Self::Other => "the container around jobc",
        }
    }

    /// The options for containers inside it.
    pub fn allow(self) -> &'static str {
        match self {
            Self::DevContainer => {
                "add `\"runArgs\": [\"--security-opt=seccomp=unconfined\", \"--security-opt=apparmor=unconfined\"]` to devcontainer.json, and rebuild the container"
            }
            Self::Kubernetes => {
                "set `securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}` for the container in the pod"
            }
            Self::Podman => {
                "start it with `podman run --security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
            }
            Self::Docker => {
                "start it with `docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
            }
            Self::Other => {
                "start jobc where user namespaces are allowed: without a seccomp filter or an AppArmor profile that forbids them"
            }
        }
    }

    /// How root that lacks the capabilities for user namespaces gets them.
    pub fn allow_root(self) -> &'static str {
        match self {
            Self::Kubernetes => {
                "set `securityContext: {capabilities: {add: [SETUID, SETGID, SETFCAP]}}` for the container in the pod, or `runAsUser` to a user other than 0"
            }
            _ => {
                "start it with `--cap-add SETUID --cap-add SETGID --cap-add SETFCAP`, or as another user with `--user 1000`"
            }
        }
    }

    /// The options for a separate /proc in containers inside it and, if the filter forbids it, a separate host name.
    pub fn unmask(self, filter: bool) -> &'static str {
        match (self, filter) {
            (Self::DevContainer, false) => "`\"runArgs\": [\"--security-opt=systempaths=unconfined\"]`",
            (Self::DevContainer, true) => {
                "`\"runArgs\": [\"--security-opt=systempaths=unconfined\", \"--security-opt=seccomp=unconfined\"]`"
            }
            (Self::Kubernetes, false) => "`procMount: Unmasked` with `hostUsers: false`",
            (Self::Kubernetes, true) => {
                "`procMount: Unmasked` and `seccompProfile: {type: Unconfined}` with `hostUsers: false`"
            }
            (Self::Podman, false) => "`podman run --security-opt unmask=ALL`",
            (Self::Podman, true) => {
                "`podman run --security-opt unmask=ALL --security-opt seccomp=unconfined`"
            }
            (Self::Docker, false) => "`docker run --security-opt systempaths=unconfined`",
            (Self::Docker, true) => {
                "`docker run --security-opt systempaths=unconfined --security-opt seccomp=unconfined`"
            }
            (Self::Other, _) => "a container without masked paths and without a seccomp filter",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_known_by_what_it_leaves() {
        let of = |variables: &[&str], paths: &[&str]| {
            Engine::of(&|name| variables.contains(&name), &|path| paths.contains(&path))
        };
        assert_eq!(of(&[], &[]), None);
        assert_eq!(of(&["container"], &["/run/.containerenv"]), Some(Engine::Podman));
        assert_eq!(of(&[], &["/.dockerenv"]), Some(Engine::Docker));
        assert_eq!(of(&["KUBERNETES_SERVICE_HOST"], &["/.dockerenv"]), Some(Engine::Kubernetes));
        assert_eq!(of(&[], &["/run/secrets/kubernetes.io"]), Some(Engine::Kubernetes));
        assert_eq!(of(&["REMOTE_CONTAINERS"], &["/.dockerenv"]), Some(Engine::DevContainer));
        assert_eq!(of(&["container"], &[]), Some(Engine::Other), "LXC");
    }
}
