//! Whether a namespace belongs to the container alone: settings in another one would apply to the host.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use oci_spec::runtime::{Linux, LinuxNamespaceType};

use crate::namespaces::Namespace;

/// Checks that the container has a namespace that is not the host's: a new one, or an existing one that it joins.
///
/// # Errors
///
/// Why it has none, to follow a colon.
pub(crate) fn check_own_namespace(
    linux: Option<&Linux>,
    kind: LinuxNamespaceType,
) -> Result<(), &'static str> {
    let namespaces = linux.and_then(|linux| linux.namespaces().as_ref()).into_iter().flatten();
    let Some(namespace) = namespaces.into_iter().find(|namespace| namespace.typ() == kind) else {
        return Err("the container uses the host's namespace");
    };
    let Some(path) = namespace.path().as_deref().filter(|path| !path.as_os_str().is_empty()) else {
        return Ok(());
    };
    // A path that cannot be opened is reported when it is joined.
    match std::fs::metadata(path) {
        Ok(joined) if is_host_namespace(&joined, Namespace::of(kind)) => {
            Err("the namespace it joins is the host's")
        }
        _ => Ok(()),
    }
}

/// Whether a namespace file is that of this process or of the host's first process.
///
/// A runtime that was itself given a namespace can name the host's as `/proc/1/ns/…`.
pub(crate) fn is_host_namespace(namespace: &Metadata, kind: Namespace) -> bool {
    let identity = |file: &Metadata| (file.dev(), file.ino());
    ["self", "1"].iter().any(|process| {
        let file = Path::new("/proc").join(process).join("ns").join(kind.file());
        std::fs::metadata(file).is_ok_and(|file| identity(&file) == identity(namespace))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(namespaces: &Value, kind: LinuxNamespaceType) -> Result<(), &'static str> {
        let linux: Linux = serde_json::from_value(json!({"namespaces": namespaces})).expect("a section");
        check_own_namespace(Some(&linux), kind)
    }

    #[test]
    fn a_namespace_by_path_is_the_hosts_or_another() {
        let (shared, machines) =
            (Err("the container uses the host's namespace"), Err("the namespace it joins is the host's"));
        for kind in [
            LinuxNamespaceType::Uts,
            LinuxNamespaceType::Ipc,
            LinuxNamespaceType::Network,
            LinuxNamespaceType::Cgroup,
        ] {
            let file = Namespace::of(kind).file();
            assert_eq!(check(&json!([]), kind), shared);
            assert_eq!(check(&json!([{"type": kind}]), kind), Ok(()));
            assert_eq!(check(&json!([{"type": kind, "path": ""}]), kind), Ok(()));
            assert_eq!(check(&json!([{"type": kind, "path": "/not/there"}]), kind), Ok(()));
            for process in ["self".to_owned(), "thread-self".to_owned(), std::process::id().to_string()] {
                let path = format!("/proc/{process}/ns/{file}");
                assert_eq!(check(&json!([{"type": kind, "path": path}]), kind), machines, "{path}");
            }
            // A file of another type is another namespace, regardless of its name.
            assert_eq!(check(&json!([{"type": kind, "path": "/proc/self/ns/mnt"}]), kind), Ok(()));
        }
        assert_eq!(check_own_namespace(None, LinuxNamespaceType::Uts), shared);
    }
}
