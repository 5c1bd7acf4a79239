//! All cases once more under kernels of their own, each with another arrangement of control groups.

use std::path::Path;
use std::process::Command;

/// Runs this program's tests under a user-mode kernel; skipped aloud where that is not installed.
fn check(arrangement: &str) {
    if std::env::var_os("JOBC_UNDER").is_some() {
        return;
    }
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vm/uml");
    let installed = Command::new("sh")
        .args(["-c", "command -v linux.uml"])
        .output()
        .is_ok_and(|out| out.status.success());
    if !installed && std::env::var_os("JOBC_ORACLES").is_none_or(|value| value != "required") {
        eprintln!("skipped: `linux.uml` is not installed; `tests/oracles/install` installs it");
        return;
    }
    let done = Command::new(runner)
        .args(["-c", arrangement, "-t", "300"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--test-threads=1", "--nocapture"])
        .env("JOBC_UNDER", arrangement)
        .output()
        .expect("the runner starts");
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}\n{text}", done.status);
    assert!(text.contains("0 failed"), "{text}");
    assert!(!text.contains("skipped: only root"), "{text}");
    println!("{text}");
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
    check("hybrid");
}
