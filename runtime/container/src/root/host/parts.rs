//! The host's files in parts, for a user namespace.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::{HIDDEN_DIRECTORIES, MountVisibility, WRITABLE_DIRECTORY};
use crate::root::RootParts;

/// Up to how many entries a directory with mounts below is taken apart; one with more is shown read-only, as a whole.
/// [`WRITABLE_DIRECTORY`] is taken apart whatever it has.
const MAX_ENTRIES: usize = 64;

/// The home directory of a container's root. In a user namespace that is an unprivileged user, who writes files such as
/// ~/.ssh/config there: where a directory in it is closed to this user, it is taken apart, so that the container's is empty.
const HOME_DIRECTORY: &str = "/root";

/// The second directory of everybody's temporary files. It gets a writable layer of its own: before a file is made in a
/// directory of a lower layer, the kernel copies that directory with its owner, and the host's root, who owns this one,
/// has no ID in the container. So the kernel fails with EOVERFLOW.
const VAR_TMP: &str = "/var/tmp";

/// The longest path of a layer: fsconfig(2) takes 255 bytes.
const MAX_LAYER_PATH_LEN: usize = 255;

/// The parts of a root, and its read-only files.
///
/// A directory that this user cannot read is shown empty, and so is /tmp, which holds other users' files. Overlays are
/// listed in the order in which they are mounted.
pub(super) fn split_root(
    root: &Path,
    mounts: &BTreeMap<PathBuf, MountVisibility>,
) -> (RootParts, Vec<PathBuf>) {
    let (mut parts, mut shown) = (RootParts::default(), Vec::new());
    split_directory(root, root, mounts, &mut parts, &mut shown);
    (parts, shown)
}

fn split_directory(
    root: &Path,
    directory: &Path,
    mounts: &BTreeMap<PathBuf, MountVisibility>,
    parts: &mut RootParts,
    shown: &mut Vec<PathBuf>,
) {
    for path in entries(directory) {
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        if data.is_symlink() {
            parts.links.extend(fs::read_link(&path).map(|target| (path, target)));
        } else if data.is_file() {
            shown.push(path);
        } else if data.is_dir() {
            let bits = data.mode() & 0o7777;
            match part_kind(root, &path, mounts) {
                PartKind::Closed => parts.directories.push((path, 0o755)),
                PartKind::Empty => parts.directories.push((path, bits)),
                PartKind::Overlay => {
                    let inner = root.join(VAR_TMP.trim_start_matches('/'));
                    let inner_bits = fs::symlink_metadata(&inner)
                        .ok()
                        .filter(|data| data.is_dir() && inner.parent() == Some(&path))
                        .map(|data| data.mode() & 0o7777);
                    parts.overlays.push((path, bits));
                    parts.overlays.extend(inner_bits.map(|bits| (inner, bits)));
                }
                PartKind::ReadOnly => shown.push(path),
                PartKind::Split => {
                    parts.directories.push((path.clone(), bits));
                    split_directory(root, &path, mounts, parts, shown);
                }
            }
        }
    }
}

/// How a directory becomes part of the root.
enum PartKind {
    /// Empty: its contents cannot be read.
    Closed,
    Empty,
    /// Under a writable layer.
    Overlay,
    /// Read-only.
    ReadOnly,
    /// Empty at first; its content is handled separately.
    Split,
}

fn part_kind(root: &Path, path: &Path, mounts: &BTreeMap<PathBuf, MountVisibility>) -> PartKind {
    let place = Path::new("/").join(path.strip_prefix(root).unwrap_or(path));
    let hidden =
        place == Path::new("/tmp") || HIDDEN_DIRECTORIES.iter().any(|hidden| place == Path::new(hidden));
    let mount = mounts.get(path);
    if hidden || mount == Some(&MountVisibility::Hidden) {
        return PartKind::Empty;
    }
    if is_closed(path) {
        return PartKind::Closed;
    }
    let is_written = place == Path::new(WRITABLE_DIRECTORY);
    if mount == Some(&MountVisibility::Shown) && !is_written {
        return PartKind::ReadOnly;
    }
    let has_mounts = mounts.keys().any(|mount| mount != path && mount.starts_with(path));
    let name = path.as_os_str().as_encoded_bytes();
    let entries = entries(path);
    let has_closed = place == Path::new(HOME_DIRECTORY) && entries.iter().any(|entry| is_closed(entry));
    match entries.len() {
        0 => PartKind::Empty,
        entries if (has_mounts || has_closed) && (entries <= MAX_ENTRIES || is_written) => PartKind::Split,
        _ if has_mounts => PartKind::ReadOnly,
        // A colon parts layers.
        _ if name.len() > MAX_LAYER_PATH_LEN || name.contains(&b':') => PartKind::ReadOnly,
        _ => PartKind::Overlay,
    }
}

/// Whether this user cannot read a directory.
fn is_closed(directory: &Path) -> bool {
    directory.is_dir() && access(directory, Access::READ_OK | Access::EXEC_OK).is_err()
}

/// The entries of a directory, sorted; empty if it cannot be read.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort_unstable();
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_taken_apart_around_its_mounts() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        for name in [
            "usr/bin",
            "etc/ssl",
            "home/ann/docs",
            "home/bob",
            "tmp/x",
            "proc",
            "var/lib/net/far",
            "mnt/disk",
            "full",
            "co:lon/x",
        ] {
            fs::create_dir_all(root.join(name)).expect("a directory");
        }
        for name in 0..=MAX_ENTRIES {
            fs::create_dir(root.join(format!("full/{name}"))).expect("a directory");
        }
        fs::write(root.join("vmlinuz"), "").expect("a file");
        std::os::unix::fs::symlink("usr/bin", root.join("bin")).expect("a link");
        let mounts = [
            ("", MountVisibility::Shown),
            ("proc", MountVisibility::Hidden),
            ("home/bob", MountVisibility::Shown),
            ("mnt/disk", MountVisibility::Shown),
            ("full/7", MountVisibility::Shown),
            ("var/lib/net/far", MountVisibility::Hidden),
        ];
        let mounts = mounts.map(|(path, kept)| (root.join(path), kept)).into_iter().collect();
        insta::assert_snapshot!(describe(root, &mounts));
    }

    #[test]
    fn var_tmp_has_a_layer_of_its_own() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        fs::create_dir_all(root.join("var/lib/net")).expect("a directory");
        fs::create_dir_all(root.join("var/tmp/x")).expect("a directory");
        let table = |places: &[&str]| {
            places.iter().map(|place| (root.join(place), MountVisibility::Shown)).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(
            describe(root, &table(&[""])),
            "overlays\n  var\n  var/tmp\ndirectories\nlinks\nread-only\n"
        );
        assert_eq!(
            describe(root, &table(&["", "var/lib/net"])),
            "overlays\n  var/tmp\ndirectories\n  var\n  var/lib\nlinks\nread-only\n  var/lib/net\n"
        );
        fs::remove_dir_all(root.join("var/tmp")).expect("no directory");
        std::os::unix::fs::symlink("/tmp", root.join("var/tmp")).expect("a link");
        assert_eq!(describe(root, &table(&[""])), "overlays\n  var\ndirectories\nlinks\nread-only\n");
    }

    /// Below a container engine /etc has mounts, and on some systems it is one.
    #[test]
    fn etc_is_written_wherever_mounts_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        fs::create_dir_all(root.join("etc/ssl/certs")).expect("a directory");
        for name in 0..=MAX_ENTRIES {
            fs::write(root.join(format!("etc/{name}")), "").expect("a file");
        }
        let table = |places: &[&str]| {
            let shown = places.iter().map(|place| (root.join(place), MountVisibility::Shown));
            shown.collect::<BTreeMap<_, _>>()
        };
        let mounts_below = describe(root, &table(&["", "etc/0", "etc/1"]));
        let files: String = (0..=MAX_ENTRIES).map(|name| format!("  etc/{name}\n")).collect();
        let mut files: Vec<&str> = files.lines().collect();
        files.sort_unstable();
        assert_eq!(
            mounts_below,
            format!("overlays\n  etc/ssl\ndirectories\n  etc\nlinks\nread-only\n{}\n", files.join("\n"))
        );
        let whole = "overlays\n  etc\ndirectories\nlinks\nread-only\n";
        assert_eq!(describe(root, &table(&["", "etc"])), whole);
        assert_eq!(describe(root, &table(&["", "etc", "etc/0"])), mounts_below);
    }

    fn describe(root: &Path, mounts: &BTreeMap<PathBuf, MountVisibility>) -> String {
        let (parts, shown) = split_root(root, mounts);
        let names = |paths: Vec<&PathBuf>| -> String {
            paths
                .iter()
                .map(|path| format!("  {}\n", path.strip_prefix(root).expect("below").display()))
                .collect()
        };
        format!(
            "overlays\n{}directories\n{}links\n{}read-only\n{}",
            names(parts.overlays.iter().map(|(path, _)| path).collect()),
            names(parts.directories.iter().map(|(path, _)| path).collect()),
            names(parts.links.iter().map(|(path, _)| path).collect()),
            names(shown.iter().collect())
        )
    }
}
