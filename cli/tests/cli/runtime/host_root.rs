//! `jobc run --root host`: the host's own files under a writable layer, as root and as an unprivileged user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::directory::{Directory, Run, binary};

/// A user who is not in /etc/passwd.
const OTHER_USER: u32 = 54_322;

/// Directories for a bundle, for state and for a binary that all users may run.
fn place(script: &str, change: &Value) -> Directory {
    let directory = Directory::new();
    let mut config = json!({
        "ociVersion": "1.1.0",
        "root": {"path": "rootfs"},
        "process": {"args": ["/bin/sh", "-c", script], "cwd": "/", "env": ["PATH=/usr/bin:/bin"], "user": {"uid": 0, "gid": 0}},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}]}
    });
    for (key, value) in change.as_object().unwrap() {
        config[key] = value.clone();
    }
    directory.write("bundle/config.json", &config.to_string());
    let open = |path: &str, mode| {
        fs::set_permissions(directory.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    open("", 0o755);
    for (path, uid) in [("mine", 0), ("theirs", OTHER_USER)] {
        let path = directory.path().join(path);
        fs::create_dir(&path).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(uid), Some(uid)).unwrap();
        }
    }
    fs::copy(binary(), directory.path().join("jobc")).unwrap();
    open("jobc", 0o755);
    directory
}

/// Runs the bundle as root and as another user, if possible here.
fn runs(directory: &Directory) -> Vec<(&'static str, Run)> {
    if !jobc_test_skip::is_root() {
        return vec![];
    }
    let command = |state: &str| {
        let mut command: Command = directory.command(directory.path().join("jobc").as_str());
        command.args(["run", "--root", "host", "bundle"]);
        command.env("XDG_RUNTIME_DIR", directory.path().join(state));
        command
    };
    let mut theirs = command("theirs");
    theirs.uid(OTHER_USER).gid(OTHER_USER);
    vec![("root", Run::of(&mut command("mine"))), ("an unprivileged user", Run::of(&mut theirs))]
}

#[test]
fn changes_stay_in_the_container() {
    let script =
        "ls /usr/bin >/dev/null && touch /etc/jobc-was-here /usr/jobc-was-here && ls /etc/jobc-was-here";
    for (who, run) in runs(&place(script, &json!({}))) {
        assert_eq!(run.code, Some(0), "{who}: {}", run.err);
        assert_eq!(run.out, "/etc/jobc-was-here\n", "{who}");
        for path in ["/etc/jobc-was-here", "/usr/jobc-was-here"] {
            assert!(!fs::exists(path).unwrap(), "{who} wrote `{path}` on the host");
        }
    }
}

/// As in containers, where /etc/hosts is a mount, and on hosts where /etc is.
#[test]
fn etc_is_written_where_it_has_mounts_or_is_one() {
    let directory = place("touch /etc/jobc-was-here && cat /etc/hosts", &json!({}));
    if !jobc_test_skip::is_root() {
        return;
    }
    if !fs::exists("/etc/hosts").unwrap() {
        jobc_test_skip::skip("/etc/hosts");
        return;
    }
    directory.write("hosts", "192.0.2.1 mounted\n");
    let user = format!("setpriv --reuid={OTHER_USER} --regid={OTHER_USER} --clear-groups");
    for mounts in [
        "mount --bind hosts /etc/hosts",
        "mount --bind /etc /etc",
        "mount --bind /etc /etc && mount --bind hosts /etc/hosts",
    ] {
        for (state, who) in [("mine", ""), ("theirs", user.as_str())] {
            let run = format!("exec {who} env XDG_RUNTIME_DIR=$PWD/{state} ./jobc run --root host bundle");
            let run = directory
                .bash(&format!("unshare -m --propagation private sh -c '{mounts} && {run}'"))
                .exits(0);
            assert_eq!(run.out.contains("mounted"), mounts.contains("hosts"), "{mounts} {who}: {}", run.out);
            assert!(!fs::exists("/etc/jobc-was-here").unwrap(), "{mounts} {who}");
        }
    }
}

#[test]
fn a_read_only_root_is_read_only_in_every_directory() {
    let script = "for directory in / /etc /usr /var; do touch $directory/jobc-was-here 2>/dev/null && echo $directory; done; true";
    for (who, run) in runs(&place(script, &json!({"root": {"path": "rootfs", "readonly": true}}))) {
        assert_eq!(run.code, Some(0), "{who}: {}", run.err);
        assert_eq!(run.out, "", "{who} could write there");
    }
}

/// The links in `/` must lead to the host's programs, but not to its devices and processes.
#[test]
fn links_lead_on_and_the_kernels_directories_are_the_containers_own() {
    let script = "test -x /bin/sh && ls /sys && ls /dev && echo /proc/[0-9]*";
    for (who, run) in runs(&place(script, &json!({}))) {
        assert_eq!(run.code, Some(0), "{who}: {}", run.err);
        let nodes =
            ["fd", "full", "null", "ptmx", "random", "stderr", "stdin", "stdout", "tty", "urandom", "zero"];
        let (own, processes) = run.out.trim_end().rsplit_once('\n').unwrap();
        assert_eq!(own.split('\n').collect::<Vec<_>>(), nodes, "{who}");
        assert!(processes.split(' ').count() < 4 && processes.starts_with("/proc/1"), "{who}: {processes}");
    }
}
