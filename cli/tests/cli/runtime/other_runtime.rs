//! `jobc run --oci-runtime`: the command lines that another runtime gets, its state, its end; and real ones where
//! installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

use crate::directory::{Directory, Run, binary, command};
use crate::runtime::oci::bundle;

/// A bundle and a runtime `runc` of a few lines of shell, which writes its arguments to `calls`, then does `what`.
fn with_runtime(what: &str) -> Option<Directory> {
    let directory = bundle("true", |_| {})?;
    directory.write("runc", &format!("#!/bin/bash\necho \"$*\" >>calls\nmkdir -p \"$2\"\n{what}\n"));
    directory.bash("chmod +x runc; mkdir rootfs").exits(0);
    Some(directory)
}

/// The script of a user who runs the bundle with `./runc` and sends TERM three times.
const INSIST: &str = "set -m; \"$JOBC\" run --id insist-$$ --oci-runtime ./runc --root rootfs . </dev/null >out 2>err & run=$!
    for i in $(seq 400); do grep -qs ready out && break; sleep 0.02; done
    for i in 1 2 3; do kill -TERM $run; sleep 0.2; done
    { sleep 20; kill -KILL $run; } >/dev/null 2>&1 & watchdog=$!
    wait $run; code=$?; kill $watchdog
    ls -d /run/jobc/containers/insist-$$ 2>/dev/null; sed \"s/insist-$$/ID/g\" calls; cat err >&2; exit $code";

#[test]
fn a_known_runtime_keeps_its_state_with_the_container() {
    let Some(directory) = with_runtime("[ -d \"$2\" ] && echo kept >\"$2/file\"; exit 3") else { return };
    let id = format!("state-{}", std::process::id());
    directory.jobc(&["run", "--oci-runtime", "./runc", "--root", "rootfs", "--id", &id, "."]).exits(3);
    let own = format!("/run/jobc/containers/{id}");
    assert_eq!(directory.read("calls"), format!("--root {own}/runtime run --bundle {own}/bundle {id}\n"));
    assert!(!fs::exists(own).unwrap());
    let shown = ["run", "--dry-run", "--oci-runtime", "./runc", "--root", "rootfs", "--id", &id, "."];
    let dry = directory.jobc(&shown).exits(0);
    assert!(
        dry.out.contains(&format!("\n./{}", directory.read("calls").replacen("--root", "runc --root", 1))),
        "{}",
        dry.out
    );
}

#[test]
fn three_signals_have_the_runtime_kill_its_container() {
    let run = "trap : TERM; if [ $3 = run ]; then mkdir \"$2/$6\"; echo ready; until [ -e killed ]; do sleep 0.05; done; rmdir \"$2/$6\"; exit 137; fi; touch killed";
    let Some(directory) = with_runtime(run) else { return };
    let run = directory.bash(INSIST).exits(137);
    let own = "/run/jobc/containers/ID";
    let expected =
        format!("--root {own}/runtime run --bundle {own}/bundle ID\n--root {own}/runtime kill ID KILL\n");
    assert_eq!(run.out, expected, "{}", run.err);
}

#[test]
fn a_runtime_that_cannot_kill_is_killed_and_what_it_left_is_deleted() {
    let run = "trap : TERM; [ $3 = kill ] && exit 1; [ $3 = run ] || exit 0; mkdir \"$2/$6\"; echo ready; while :; do sleep 0.05; done";
    let Some(directory) = with_runtime(run) else { return };
    let run = directory.bash(INSIST).exits(137);
    assert!(
        run.out.ends_with("kill ID KILL\n--root /run/jobc/containers/ID/runtime delete --force ID\n"),
        "{}",
        run.out
    );
}

/// A root file system that is nothing but a shell, which every user may read; nothing where there is none without
/// libraries.
fn tiny_root(directory: &Directory) -> bool {
    directory.bash("mkdir -p rootfs/bin rootfs/proc rootfs/dev && cp \"$(command -v busybox)\" rootfs/bin/sh && rootfs/bin/sh -c true").code == Some(0)
}

#[test]
fn runc_runs_it_as_root_and_as_somebody_without_a_runtime_directory() {
    if command("runc").arg("--version").output().is_err() {
        jobc_test_skip::skip("runc");
        return;
    }
    let Some(directory) = bundle("echo ran; exit 5", |config| {
        config["mounts"].as_array_mut().unwrap().truncate(2);
        config["linux"].as_object_mut().unwrap().remove("cgroupsPath");
        config.as_object_mut().unwrap().remove("annotations");
    }) else {
        return;
    };
    if !tiny_root(&directory) {
        jobc_test_skip::skip("busybox-static");
        return;
    }
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(binary(), directory.path().join("jobc")).unwrap();
    fs::set_permissions(directory.path().join("jobc"), fs::Permissions::from_mode(0o755)).unwrap();
    directory.bash("mkdir -m 1777 tmp").exits(0);
    let id = format!("real-{}", std::process::id());
    for uid in [0, 32205] {
        let mut run = directory.command(directory.path().join("jobc").as_str());
        run.args(["run", "--oci-runtime", "runc", "--id", &id, "."]).uid(uid).gid(uid);
        run.env_remove("XDG_RUNTIME_DIR")
            .env("HOME", directory.path())
            .env("TMPDIR", directory.path().join("tmp"));
        let run = Run::of(&mut run).exits(5);
        assert_eq!((run.out.as_str(), run.err.as_str()), ("ran\n", ""), "user {uid}");
    }
    let left =
        directory.bash(&format!("ls -d /run/jobc/containers/{id} 2>/dev/null; ls tmp/jobc-32205/containers"));
    assert_eq!((left.code, left.out.as_str()), (Some(0), ""), "{}", left.err);
}
