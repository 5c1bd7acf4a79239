//! Hooks inside a container, on the host's own files.

use serde_json::{Value, json};

use crate::directory::{Directory, Run};

/// Runs a program with one `startContainer` hook; nothing where this user cannot be root.
fn run(hook: &Value, script: &str) -> Option<Run> {
    if !jobc_test_skip::is_root() {
        return None;
    }
    let directory = Directory::new();
    let config = json!({
        "ociVersion": "1.1.0",
        "root": {"path": "rootfs"},
        "process": {"args": ["/bin/sh", "-c", script], "cwd": "/", "env": ["PATH=/usr/bin:/bin"], "user": {"uid": 0, "gid": 0}},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "hooks": {"startContainer": [hook]},
        "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}]}
    });
    directory.write("config.json", &config.to_string());
    Some(Run::of(
        directory
            .command(crate::directory::binary())
            .args(["run", "--root", "host", "."])
            .env("XDG_RUNTIME_DIR", directory.path()),
    ))
}

#[test]
fn a_hook_gets_the_state_and_nothing_else() {
    let script = "cat >/hook-state; ls /proc/self/fd >/hook-fds; env >/hook-env; echo loud >&2";
    let hook = json!({"path": "/bin/sh", "args": ["sh", "-c", script], "env": ["MINE=1"]});
    let Some(run) = run(&hook, "cat /hook-state; echo; cat /hook-fds /hook-env") else { return };
    let run = run.exits(0).says("loud");
    let (state, rest) = run.out.split_once('\n').unwrap();
    let state: Value = serde_json::from_str(state).expect("the state is JSON");
    assert_eq!((&state["status"], &state["pid"]), (&json!("created"), &json!(1)), "{state}");
    // 3 is the directory that ls reads.
    assert!(rest.starts_with("0\n1\n2\n3\nMINE=1\n"), "{rest}");
}

/// An image's hook that is `/proc/self/exe`, or a script of it, must not become this program: it would hold the
/// host's file (CVE-2019-5736).
#[test]
fn a_hook_is_never_the_program_that_starts_it() {
    let Some(run) = run(&json!({"path": "/proc/self/exe", "args": ["jobc", "--version"]}), "true") else {
        return;
    };
    run.exits(125).says("the startContainer hook `/proc/self/exe` cannot be executed");
}

#[test]
fn a_hook_that_is_not_there_ends_the_start() {
    let Some(run) = run(&json!({"path": "/no/such/hook"}), "true") else { return };
    run.exits(125)
        .says("the startContainer hook `/no/such/hook` cannot be executed")
        .says("inside the container");
}
