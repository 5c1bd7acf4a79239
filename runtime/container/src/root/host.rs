//! The host's own files as a root: read-only under an overlay, for a container that needs no image.

mod parts;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use oci_spec::runtime::LinuxNamespaceType;

use super::{Root, UpperLayer};
use crate::bundle::Bundle;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::kernel_file::unescape;

/// An overlay over `/` without a mount point yet. The annotation `dev.jobc.disk` is the size of its writable layer.
pub(super) fn overlay(bundle: &Bundle) -> Result<Root> {
    let upper = UpperLayer::Memory { size: upper_size(bundle)? };
    let on = PathBuf::new();
    let table = fs::read("/proc/self/mountinfo")
        .map_err(|error| Error::new(Kind::System, "cannot list the mounts").because(error))?;
    let lower = PathBuf::from("/");
    let table = mounts(&table);
    if in_user_namespace(bundle) || table.contains_key(Path::new(WRITABLE_DIRECTORY)) {
        let (parts, binds) = parts::split_root(&lower, &table);
        return Ok(Root::Overlay { lowers: vec![lower], upper, on, binds, parts: Some(parts) });
    }
    let shown = table.into_iter().filter(|(path, kind)| *kind == MountVisibility::Shown && path != &lower);
    // A mount that cannot be read, such as another user's FUSE mount, cannot be shown either.
    let binds = shown.map(|(path, _)| path).filter(|path| fs::symlink_metadata(path).is_ok()).collect();
    Ok(Root::Overlay { lowers: vec![lower], upper, on, binds, parts: None })
}

/// How many bytes a writable layer may take.
pub(super) fn upper_size(bundle: &Bundle) -> Result<Option<u64>> {
    bundle.annotation("dev.jobc.disk").map(size).transpose()
}

/// Whether the container will be in a user namespace: as configured, as its user needs, or as this process is.
fn in_user_namespace(bundle: &Bundle) -> bool {
    let namespaces = bundle.config.spec.linux().as_ref().and_then(|linux| linux.namespaces().as_ref());
    let own = namespaces.into_iter().flatten().any(|namespace| namespace.typ() == LinuxNamespaceType::User);
    own || jobc_sys::host::needs_user_namespace() || jobc_sys::host::in_user_namespace()
}

fn size(text: &str) -> Result<u64> {
    text.parse().ok().filter(|bytes| *bytes > 0).ok_or_else(|| {
        Error::new(Kind::Config, format!("`{text}` is not a number of bytes"))
            .at("/annotations/dev.jobc.disk")
            .help("write a decimal number above 0")
    })
}

/// File systems that are a view of the kernel or of this boot, not files of the host.
const VIRTUAL_FILE_SYSTEMS: [&str; 24] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "ramfs",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// Directories below which mounts belong to the kernel, to this boot, or to other containers.
const HIDDEN_DIRECTORIES: [&str; 8] = [
    "/dev",
    "/proc",
    "/run",
    "/sys",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/kubelet",
];

/// The directory where every container gets its own files, such as /etc/jobc/job.json: it is writable in the container
/// regardless of mounts at or below it.
const WRITABLE_DIRECTORY: &str = "/etc";

/// How a mount of the host is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MountVisibility {
    /// It holds files of the host.
    Shown,
    /// It belongs to the kernel, to this boot, or to other containers.
    Hidden,
}

/// The host's mounts, outer ones first, from /proc/PID/mountinfo (proc_pid_mountinfo(5)).
fn mounts(table: &[u8]) -> BTreeMap<PathBuf, MountVisibility> {
    let mut found = BTreeMap::new();
    for line in table.split(|&byte| byte == b'\n') {
        let mut fields = line.split(|&byte| byte == b' ');
        let (Some(place), Some(kind)) = (fields.nth(4), fields.skip_while(|field| *field != b"-").nth(1))
        else {
            continue;
        };
        let place = unescape(place);
        // Engines keep the /etc/hosts of a container in memory, and some systems all of /etc.
        let hidden = !place.starts_with(WRITABLE_DIRECTORY)
            && (HIDDEN_DIRECTORIES.iter().any(|directory| place.starts_with(directory))
                || VIRTUAL_FILE_SYSTEMS.iter().any(|name| name.as_bytes() == kind));
        found.insert(place, if hidden { MountVisibility::Hidden } else { MountVisibility::Shown });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_with_files_of_the_host() {
        let table = b"\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw - proc proc rw
23 21 0:21 / /dev rw master:2 - devtmpfs udev rw
24 23 8:5 / /dev/keep rw - ext4 /dev/sda5 rw
25 21 8:2 / /home rw,relatime - ext4 /dev/sda2 rw
26 25 0:40 / /home/ann/my\\040files\\134 rw - fuse.sshfs far:/ rw
27 21 8:3 / /home-old rw - xfs /dev/sda3 rw
28 21 0:41 / /tmp rw - tmpfs tmpfs rw
29 21 0:42 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw
30 21 0:43 / /usr rw - overlay sysext ro
31 21 0:4 net:[1] /run/netns/x rw - nsfs nsfs rw
32 21 8:1 /etc/resolv /etc/resolv.conf rw - ext4 /dev/sda1 rw
33 21 0:44 / /proceedings rw - nfs4 server:/ rw
35 21 0:45 /c/hosts /etc/hosts rw - tmpfs tmpfs rw
34 21 8:2 / /home rw,relatime - ext4 /dev/sda2 rw
broken line
";
        let shown = mounts(table).into_iter().filter(|(_, kept)| *kept == MountVisibility::Shown);
        let found: Vec<String> = shown.map(|(path, _)| path.display().to_string()).collect();
        let expected = [
            "/",
            "/etc/hosts",
            "/etc/resolv.conf",
            "/home",
            "/home/ann/my files\\",
            "/home-old",
            "/proceedings",
            "/usr",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_size_of_the_writable_layer() {
        assert_eq!(size("1048576"), Ok(1_048_576));
        for wrong in ["", "0", "-1", "1G", "99999999999999999999"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
