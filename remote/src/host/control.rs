//! The path of ssh's control socket: one connection to a host serves all commands of a user for a while.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use jobc_schema::digest::Digest;

/// The maximum length of a socket's path on any Unix.
const MAX_SOCKET_PATH: usize = 103;
/// What ssh appends to the path while it makes the socket: a dot and 16 characters.
const TEMPORARY_SUFFIX: usize = 17;
/// Digits of the digest in the socket's name.
const DIGITS: usize = 16;

/// The path of the control socket for a host; none if no private directory has a path that is short enough.
pub(super) fn path(host: &str, jump: Option<&str>) -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let set = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    // Several hosts can share a home directory, but not a socket.
    let own_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = Digest::of(format!("{own_name}\n{host}\n{}", jump.unwrap_or_default()).as_bytes());
    let directories = [
        set("XDG_RUNTIME_DIR").filter(|path| path.is_dir()).map(|path| path.join("jobc-ssh")),
        set("XDG_CACHE_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".cache")))
            .map(|path| path.join("jobc/ssh")),
        Some(PathBuf::from(format!("/tmp/jobc-ssh-{user}"))),
    ];
    directories
        .into_iter()
        .flatten()
        .filter(|directory| fits(directory))
        .find(|directory| make_private(directory, user))
        .map(|directory| directory.join(&name.hex()[..DIGITS]))
}

fn fits(directory: &Path) -> bool {
    // ssh would replace what follows them.
    let has_pattern = directory.as_os_str().as_encoded_bytes().iter().any(|byte| b"%$".contains(byte));
    !has_pattern && directory.as_os_str().len() + 1 + DIGITS + TEMPORARY_SUFFIX <= MAX_SOCKET_PATH
}

/// Creates a directory that only the user can enter; false if it belongs to another user.
fn make_private(directory: &Path, user: u32) -> bool {
    let is_private = || {
        fs::symlink_metadata(directory)
            .is_ok_and(|status| status.is_dir() && status.uid() == user && status.mode() & 0o777 == 0o700)
    };
    if is_private() {
        return true;
    }
    if let Some(parent) = directory.parent() {
        let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
    }
    let _ = fs::DirBuilder::new().mode(0o700).create(directory);
    is_private()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_directory_is_private_and_its_path_short() {
        let directory = tempfile::tempdir().unwrap();
        let user = rustix::process::getuid().as_raw();
        let own = directory.path().join("a/own");
        assert!(make_private(&own, user) && make_private(&own, user));
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!make_private(&own, user));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(directory.path(), &link).unwrap();
        assert!(!make_private(&link, user));
        assert!(!make_private(&directory.path().join("b"), user + 1));
        assert!(fits(Path::new("/run/user/1000/jobc-ssh")));
        assert!(!fits(&Path::new("/").join("x".repeat(80))));
        assert!(fits(Path::new("/home/it's a b/.cache/jobc/ssh")));
        assert!(!fits(Path::new("/home/100%h/.cache")) && !fits(Path::new("/home/${HOME}/.cache")));
    }
}
