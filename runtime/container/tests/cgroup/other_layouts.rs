//! All cases again under separate kernels, each with another cgroup layout.

use std::path::Path;
use std::process::Command;

/// Whether a separate kernel can be started here; otherwise the test is skipped.
fn is_installed(what: &str, probe: &str) -> bool {
    if std::env::var_os("JOBC_UNDER").is_some() {
        return false;
    }
    let found = Command::new("sh").args(["-c", probe]).status().is_ok_and(|status| status.success());
    let required = std::env::var_os("JOBC_ORACLES").is_some_and(|value| value == "required");
    assert!(found || !required, "{what} is not installed; `tests/oracles/install` installs it");
    if !found {
        jobc_test_skip::skip(what);
    }
    found
}

/// Runs this program's tests of that name under a kernel that `tests/vm/<runner>` starts; its output.
fn run(runner: &[&str], name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vm");
    let done = Command::new(directory.join(runner[0]))
        .args(&runner[1..])
        .args(["-t", "300"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--test-threads=1", "--nocapture", name])
        .env("JOBC_UNDER", runner.join(" "))
        // What this layout does not have, another one has; and the file's directory is not in that kernel's root.
        .env_remove("JOBC_SKIPPED")
        .output()
        .expect("the runner starts");
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}\n{text}", done.status);
    assert!(text.contains(" 0 failed"), "{text}");
    assert!(!text.contains(" 0 passed"), "{text}");
    assert!(!text.contains(": needs root"), "{text}");
    println!("{text}");
    text
}

fn check(arrangement: &str) {
    if is_installed("linux.uml and busybox-static", "command -v linux.uml busybox >/dev/null") {
        run(&["uml", "-c", arrangement], "");
    }
}

#[test]
fn under_version_2() {
    check("v2");
}

#[test]
fn under_version_1() {
    check("v1");
}

#[test]
fn under_version_1_with_a_unified_tree() {
    if jobc_test_skip::is_in_full() {
        check("hybrid");
    }
}

/// User-mode kernels have neither CPU sets nor huge pages.
#[test]
fn under_a_kernel_with_every_controller() {
    let kernel = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.oracles/vm/vmlinuz");
    let probe = format!("command -v qemu-system-x86_64 busybox >/dev/null && test -r {kernel}");
    if is_installed("qemu-system-x86_64, busybox-static and .oracles/vm", &probe) {
        let text = run(&["qemu"], "limits::");
        assert!(!text.contains("skipped"), "{text}");
    }
}

#[test]
fn the_runner_tells_how_a_command_ended() {
    if !jobc_test_skip::is_in_full()
        || !is_installed("linux.uml and busybox-static", "command -v linux.uml busybox >/dev/null")
    {
        return;
    }
    let run = |arguments: &[&str]| {
        let runner = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vm/uml");
        let done = Command::new(runner).args(arguments).output().expect("the runner starts");
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let script = "test -t 1 && echo terminal; id -u; cat /proc/self/cgroup; printf 'two  words'; exit 7";
    let expected = "65534\n0::/\ntwo  words".to_owned();
    assert_eq!(run(&["-u", "nobody", "sh", "-c", script]), (Some(7), expected));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    assert_eq!(run(&["-w", path, "sh", "-c", &format!("echo seen >{path}/file")]).0, Some(0));
    assert_eq!(std::fs::read_to_string(directory.path().join("file")).expect("it was written"), "seen\n");
    assert_eq!(run(&["-t", "2", "sleep", "100"]).0, Some(124));
    assert_eq!(run(&["busybox", "poweroff", "-f"]).0, Some(125));
}
