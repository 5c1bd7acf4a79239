//! A build that does not finish leaves the previous output unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use crate::directory::{Directory, HELLO, assert_same, binary, command};
use crate::inputs::as_nobody;

/// A directory with output of the job as it was.
fn built() -> Directory {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build"]).exits(0);
    directory
}

#[test]
fn an_error_in_the_job_touches_nothing() {
    let directory = built();
    let before = directory.out();
    directory.write("job.yaml", &HELLO.replace("cpu: 1", "cpu: none"));
    directory.jobc(&["build"]).exits(1);
    assert_same(&directory.out(), &before);
}

#[test]
fn a_limit_on_the_size_of_files_touches_nothing() {
    for limit in ["trap '' XFSZ; ulimit -f 1;", "ulimit -f 1; ulimit -c 0;"] {
        let directory = built();
        let before = directory.out();
        let run = directory.bash(&format!("{limit} exec \"$JOBC\" build --set greeting=other"));
        assert_ne!(run.code, Some(0), "a limit of 1 KiB does not hold: {}", run.out);
        assert!(!run.err.contains("panicked"), "{}", run.err);
        assert_same(&visible(&directory), &before);
        directory.jobc(&["build"]).exits(0);
        assert_same(&directory.out(), &before);
    }
}

/// The output without the hidden staging directory that a killed build may leave until the next one.
fn visible(directory: &Directory) -> std::collections::BTreeMap<camino::Utf8PathBuf, Vec<u8>> {
    directory
        .out()
        .into_iter()
        .filter(|(path, _)| !path.components().any(|part| part.as_str().starts_with('.')))
        .collect()
}

#[test]
fn a_full_disk_touches_nothing() {
    let unshare = if rustix::process::geteuid().is_root() { "unshare -m" } else { "unshare -rm" };
    let probe = format!("mkdir -p probe && {unshare} mount -t tmpfs -o size=64k tmpfs probe");
    let directory = Directory::with_job(HELLO);
    if directory.bash(&probe).code != Some(0) {
        jobc_test_skip::skip("the right to mount a tmpfs");
        return;
    }
    // The first job fits; a thousand tasks do not.
    let script = r#"
        mkdir -p out && mount -t tmpfs -o size=768k tmpfs out
        "$JOBC" build >/dev/null || exit 90
        cp -a out before
        "$JOBC" build --set count=1000 >/dev/null; code=$?
        [ $code = 3 ] || { echo "code $code"; exit 91; }
        diff -r before out || exit 92
        [ -z "$(ls -A out/hello | grep '^\.')" ] || exit 93
        "$JOBC" build --set greeting=again >/dev/null || exit 94
    "#;
    let run = directory.bash(&format!("exec {unshare} bash -c '{}'", script.replace('\'', r"'\''"))).exits(0);
    assert!(run.err.contains("no space left on device") || run.err.contains("cannot write"), "{}", run.err);
}

#[test]
fn a_directory_that_may_not_be_written_is_named() {
    let directory = built();
    let before = directory.out();
    fs::set_permissions(directory.path().join("out/hello"), fs::Permissions::from_mode(0o555)).unwrap();
    let run = as_nobody(&directory, &["build", "--set", "greeting=other"])
        .exits(3)
        .says("cannot write `out/hello/local`");
    assert!(run.err.contains("permission denied"), "{}", run.err);
    fs::set_permissions(directory.path().join("out/hello"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_same(&directory.out(), &before);
}

/// A build that is killed at any moment is complete or has no effect; the next one cleans up.
#[test]
fn a_killed_build_leaves_the_old_files_or_the_new_ones() {
    let directory = Directory::with_job(HELLO);
    let build = |greeting: &str| {
        let mut command = directory.command(binary());
        let set = format!("greeting={greeting}");
        command.args(["build", "--target", "local", "--set", "count=50", "--set", &set]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let start = std::time::Instant::now();
    assert!(build("a").status().unwrap().success());
    let whole = start.elapsed();
    let a = directory.out();
    assert!(build("b").status().unwrap().success());
    let b = directory.out();
    assert_ne!(a, b);
    let (mut killed, mut now) = (0, "b");
    let kills = if jobc_test_skip::in_full() { 40 } else { 10 };
    for i in 0..kills {
        let next = if now == "a" { "b" } else { "a" };
        let mut child = build(next).spawn().unwrap();
        std::thread::sleep(whole * i / kills);
        // It may have ended already.
        let _ = child.kill();
        killed += u32::from(!child.wait().unwrap().success());
        let files = visible(&directory);
        assert!(files == a || files == b, "after {i}/{kills} of a build: {} files", files.len());
        now = if files == a { "a" } else { "b" };
    }
    assert!(killed > 0, "no build was killed in the middle");
    std::thread::sleep(Duration::from_millis(5));
    assert!(build("a").status().unwrap().success());
    // Unchanged output is written no more, so make a change as well.
    assert!(build("b").status().unwrap().success());
    assert!(directory.out() == b, "a killed build's directory is left");
}

/// The exit codes of docs/reference/exit-codes.md.
#[test]
fn exit_codes_match_the_documentation() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build"]).exits(0);
    directory.jobc(&["build", "--check"]).exits(0);
    directory.jobc(&["build", "--check", "--set", "greeting=other"]).exits(1);
    directory.jobc(&["build", "--set", "count=x"]).exits(1);
    directory.jobc(&["build", "--no-such-option"]).exits(2);
    directory.jobc(&["build", "absent.yaml"]).exits(2);
    directory.bash("\"$JOBC\" plan > /dev/full").exits(3);
    directory.bash("\"$JOBC\" --help > /dev/full").exits(3);
    assert!(command(binary()).arg("--help").output().unwrap().status.success());
}
