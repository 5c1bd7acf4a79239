//! The machine's own files as a root: read-only under an overlay, for a container that needs no image.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::Root;
use crate::bundle::{Bundle, because};
use crate::error::{Error, Kind, Result};
use crate::rootfs::{Part, PartKind};

/// An overlay over `/`. Its writable layer is as large as the annotation `dev.jobc.disk` says.
pub(super) fn overlay(bundle: &Bundle, state_dir: &Path) -> Result<Root> {
    let upper_size = bundle.annotation("dev.jobc.disk").map(size).transpose()?;
    let on = state_dir.join("root");
    match fs::create_dir(&on) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            let message = format!("cannot make `{}`: {}", on.display(), because(&error));
            return Err(Error::new(Kind::Machine, message));
        }
        _ => {}
    }
    let table = fs::read("/proc/self/mountinfo")
        .map_err(|error| Error::new(Kind::Machine, format!("cannot list the mounts: {}", because(&error))))?;
    // One that cannot be looked at, such as another user's FUSE mount, cannot be shown either.
    let binds = mounts(&table).into_iter().filter(|path| fs::symlink_metadata(path).is_ok()).collect();
    Ok(Root::Overlay { lower: PathBuf::from("/"), upper_size, on, binds })
}

fn size(text: &str) -> Result<u64> {
    text.parse().ok().filter(|bytes| *bytes > 0).ok_or_else(|| {
        Error::new(Kind::Config, format!("`{text}` is not a number of bytes"))
            .at("/annotations/dev.jobc.disk")
            .help("write a decimal number above 0")
    })
}

/// File systems that are a view of the kernel or of this boot, not files of the machine.
const NOT_FILES: [&str; 24] = [
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

/// Folders below which mounts belong to the kernel, to this boot, or to other containers.
const NOT_SHOWN: [&str; 8] = [
    "/dev",
    "/proc",
    "/run",
    "/sys",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/kubelet",
];

/// The mounts below `/` that hold files of the machine, outer ones first.
fn mounts(table: &[u8]) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for (place, kind) in points(table) {
        let hidden = NOT_SHOWN.iter().any(|folder| place.starts_with(folder));
        if place != Path::new("/") && !hidden && !is_no_files(kind) {
            found.insert(place);
        }
    }
    found.into_iter().collect()
}

fn is_no_files(kind: &[u8]) -> bool {
    NOT_FILES.iter().any(|name| name.as_bytes() == kind)
}

/// All mounts with the type of their file systems, from /proc/PID/mountinfo (proc_pid_mountinfo(5)).
fn points(table: &[u8]) -> impl Iterator<Item = (PathBuf, &[u8])> {
    table.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let place = unescaped(fields.nth(4)?);
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        Some((place, kind))
    })
}

/// What stands in `/`, for a root that is put together in a user namespace ([`crate::rootfs::parts`]).
pub(crate) fn parts(lower: &Path) -> Result<Vec<Part>> {
    let table = fs::read("/proc/self/mountinfo")
        .map_err(|error| Error::new(Kind::Machine, format!("cannot list the mounts: {}", because(&error))))?;
    list(lower, &table).map_err(|error| {
        Error::new(Kind::Machine, format!("cannot list `{}`: {}", lower.display(), because(&error)))
    })
}

/// A folder below which nothing is mounted is an overlay. Others are shown as they are, read-only; those of this boot
/// and of the kernel are empty, as they are where `/` is one overlay. Files that stand in `/` itself are left out.
fn list(lower: &Path, table: &[u8]) -> io::Result<Vec<Part>> {
    let points: Vec<(PathBuf, &[u8])> = points(table).collect();
    let mut parts = vec![];
    for entry in fs::read_dir(lower)? {
        let entry = entry?;
        let path = entry.path();
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::other);
        let name = text(entry.file_name().as_bytes())?;
        let status = entry.metadata()?;
        let mode = status.permissions().mode() & 0o7777;
        let mounted = points.iter().find(|(point, _)| *point == path);
        let covered = points.iter().any(|(point, _)| point.starts_with(&path));
        let kind = match name.as_bytes() {
            _ if status.is_symlink() => {
                PartKind::Link { target: text(fs::read_link(&path)?.as_os_str().as_bytes())? }
            }
            _ if !status.is_dir() => continue,
            b"dev" | b"proc" | b"run" | b"sys" => PartKind::Empty { mode: 0o755 },
            // Everybody counts on writing there.
            b"tmp" if covered => PartKind::Empty { mode: 0o1777 },
            _ if mounted.is_some_and(|(_, kind)| is_no_files(kind)) => PartKind::Empty { mode },
            // A colon would end the name in an overlay's options.
            name if covered || name.contains(&b':') || name.contains(&b'\\') => {
                PartKind::Bind { source: text(path.as_os_str().as_bytes())? }
            }
            name => PartKind::Overlay {
                mode,
                lower: text(path.as_os_str().as_bytes())?,
                upper: text(&[b"upper/", name].concat())?,
                work: text(&[b"work/", name].concat())?,
            },
        };
        parts.push(Part { name, kind });
    }
    parts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(parts)
}

/// A path in which a space, a tab, a line's end and a backslash stand as octal numbers.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, behind)) = rest.split_first() {
        let code =
            behind.get(..3).filter(|_| first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &behind[3..];
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_with_files_of_the_machine() {
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
34 21 8:2 / /home rw,relatime - ext4 /dev/sda2 rw
broken line
";
        let found: Vec<String> = mounts(table).iter().map(|path| path.display().to_string()).collect();
        let expected =
            ["/etc/resolv.conf", "/home", "/home/ann/my files\\", "/home-old", "/proceedings", "/usr"];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_stands_in_the_root_folder_by_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["usr", "etc", "home", "var", "var/lib", "proc", "run", "tmp", "mnt", "a:b"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::set_permissions(root.join("etc"), fs::Permissions::from_mode(0o750)).unwrap();
        std::os::unix::fs::symlink("usr/bin", root.join("bin")).unwrap();
        fs::write(root.join("swapfile"), "").unwrap();
        let shown = root.display();
        let table = format!(
            "1 0 8:1 / {shown} rw - ext4 /dev/sda1 rw
2 1 8:2 / {shown}/home rw - ext4 /dev/sda2 rw
3 1 8:3 / {shown}/var/lib rw - ext4 /dev/sda3 rw
4 1 0:9 / {shown}/proc rw - proc proc rw
5 1 0:10 / {shown}/tmp rw - tmpfs tmpfs rw
6 1 0:11 / {shown}/mnt rw - tmpfs tmpfs rw
7 1 0:12 / {shown}/usrlocal rw - ext4 /dev/sda4 rw
"
        );
        let parts = list(root, table.as_bytes()).unwrap();
        let text = |text: &CString| text.to_string_lossy().replace(&format!("{shown}/"), "/");
        let line = |part: &Part| {
            let what = match &part.kind {
                PartKind::Link { target } => format!("-> {}", text(target)),
                PartKind::Empty { mode } => format!("empty {mode:o}"),
                PartKind::Overlay { mode, lower, upper, work } => {
                    format!("overlay {mode:o} {} {} {}", text(lower), text(upper), text(work))
                }
                PartKind::Bind { source } => format!("bind {}", text(source)),
            };
            format!("{} {what}", text(&part.name))
        };
        let expected = [
            "a:b bind /a:b",
            "bin -> usr/bin",
            "etc overlay 750 /etc upper/etc work/etc",
            "home bind /home",
            "mnt empty 755",
            "proc empty 755",
            "run empty 755",
            "tmp empty 1777",
            "usr overlay 755 /usr upper/usr work/usr",
            "var bind /var",
        ];
        assert_eq!(parts.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_size_of_the_writable_layer() {
        assert_eq!(size("1048576"), Ok(1_048_576));
        for wrong in ["", "0", "-1", "1G", "99999999999999999999"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
