//! Hooks that really run, most of them scripts in a directory of the test.
#![allow(clippy::needless_pass_by_value, reason = "tests write `json!` in place")]

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::program::Program;
use super::*;

const STATE: &str = r#"{"ociVersion":"1.3.0","id":"demo","status":"creating","pid":7,"bundle":"/b"}"#;

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Writes an executable file.
fn file(directory: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).expect("written");
    mode(&path, 0o755);
    path
}

fn script(directory: &Path, content: &str) -> PathBuf {
    let name = format!("hook-{}", std::fs::read_dir(directory).expect("readable").count());
    file(directory, &name, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{content}\n").as_bytes())
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
}

fn hooks(stage: Stage, list: Value) -> Hooks {
    serde_json::from_value(json!({stage.name(): list})).expect("hooks")
}

fn given<'a>(bundle: &'a Path, state: &'a str) -> HookContext<'a> {
    HookContext { state: state.as_bytes(), bundle, inherits_environment: false, cancel_fd: None }
}

/// Runs one createRuntime hook in its directory.
fn check(bundle: &Path, hook: Value) -> Result<()> {
    run(Stage::CreateRuntime, Some(&hooks(Stage::CreateRuntime, json!([hook]))), given(bundle, STATE))
}

fn text(result: Result<()>) -> String {
    result.expect_err("a failure").to_string()
}

#[test]
fn a_hook_gets_its_state_arguments_environment_and_directory() {
    let directory = directory();
    let path = script(
        directory.path(),
        "cat > state; echo \"$0 $# $1\" > arguments; unset PATH PWD; /usr/bin/env > environment; /bin/pwd > directory",
    );
    check(directory.path(), json!({"path": path, "args": ["name", "one two"], "env": ["A=b=c", "EMPTY="]}))
        .expect("fine");
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("written");
    assert_eq!(read("state"), STATE);
    assert_eq!(read("arguments"), format!("{} 1 one two\n", path.display()));
    let mut lines: Vec<_> = read("environment").lines().map(str::to_owned).collect();
    lines.retain(|line| !line.starts_with("OLDPWD=") && !line.starts_with("_="));
    assert_eq!(lines, ["A=b=c", "EMPTY="]);
    assert_eq!(read("directory"), format!("{}\n", directory.path().display()));
}

#[test]
fn a_program_is_executed_as_it_was_found_with_its_own_name() {
    let directory = directory();
    let path = file(directory.path(), "hook", &std::fs::read("/bin/true").expect("readable"));
    let hook = json!({"path": path});
    let stage = hooks(Stage::CreateRuntime, json!([hook]));
    let found =
        RuntimeHook::of(Stage::CreateRuntime, &Stage::CreateRuntime.hooks_of(&stage)[0]).expect("found");
    std::fs::rename(file(directory.path(), "other", &std::fs::read("/bin/false").expect("readable")), &path)
        .expect("swapped");
    found
        .carry_out(given(directory.path(), STATE))
        .expect("the one that was found, not the one put in its place");
    assert!(text(check(directory.path(), hook)).ends_with("hook` ended with exit code 1"));
    check(directory.path(), json!({"path": "/usr/bin/test", "args": ["test", "a", "=", "a"]}))
        .expect("its arguments");
}

#[test]
fn a_failure_names_stage_path_code_and_last_words_and_stops() {
    let directory = directory();
    let bad = script(directory.path(), "echo 'no GPU' >&2; printf 'a\\033[31mb\\n\\n'; exit 3");
    let never = script(directory.path(), "touch never");
    let stage = hooks(Stage::CreateRuntime, json!([{"path": "/bin/true"}, {"path": bad}, {"path": never}]));
    let error = run(Stage::CreateRuntime, Some(&stage), given(directory.path(), STATE)).expect_err("fails");
    let expected = format!(
        "config.json: /hooks/createRuntime/1: the createRuntime hook `{}` ended with exit code 3; it wrote:\n  no GPU\n  a [31mb",
        bad.display()
    );
    assert_eq!((error.to_string(), error.kind), (expected, Kind::Hook));
    assert!(!directory.path().join("never").exists());
    let killed = script(directory.path(), "kill -9 $$");
    assert!(text(check(directory.path(), json!({"path": killed}))).ends_with("was ended by signal 9"));
}

#[test]
fn cleaning_up_goes_on_after_a_failure() {
    let directory = directory();
    let path = script(directory.path(), "echo x >> ran; exit 1");
    let stage = hooks(Stage::Poststop, json!([{"path": path}, {"path": path}, {"path": "/bin/true"}]));
    let errors = run_all(Stage::Poststop, Some(&stage), given(directory.path(), STATE));
    let places: Vec<_> = errors.iter().filter_map(|error| error.pointer()).collect();
    assert_eq!(places, ["/hooks/poststop/0", "/hooks/poststop/1"]);
    assert_eq!(std::fs::read_to_string(directory.path().join("ran")).expect("written"), "x\nx\n");
    assert_eq!(run_all(Stage::Poststop, None, given(directory.path(), STATE)), []);
}

/// A script that starts another process and hangs; the other's id is in `other`.
const HANGS: &str = "sleep 600 & echo $! > other; echo waiting; wait";

/// Whether the process whose id a hook recorded has ended, or ends soon.
fn is_gone(directory: &Path) -> bool {
    let pid = std::fs::read_to_string(directory.join("other")).expect("written");
    let status = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(5) {
        match std::fs::read_to_string(&status) {
            Ok(text) if !text.contains(") Z ") => std::thread::sleep(Duration::from_millis(5)),
            _ => return true,
        }
    }
    false
}

#[test]
fn a_hook_that_hangs_is_killed_with_all_it_started() {
    let directory = directory();
    let path = script(directory.path(), HANGS);
    let started = Instant::now();
    let error = check(directory.path(), json!({"path": path, "timeout": 1})).expect_err("too long");
    assert!(error.message().ends_with("was killed after 1 second; it wrote:\n  waiting"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(is_gone(directory.path()));
}

#[test]
fn a_start_that_is_given_up_kills_its_hook() {
    let directory = directory();
    let path = script(directory.path(), HANGS);
    let stage = hooks(Stage::Prestart, json!([{"path": path}]));
    let (reader, writer): (OwnedFd, OwnedFd) = rustix::pipe::pipe().expect("a pipe");
    let given = HookContext { cancel_fd: Some(reader.as_fd()), ..given(directory.path(), STATE) };
    let other = directory.path().join("other");
    let ctrl_c = std::thread::spawn(move || {
        while std::fs::read_to_string(&other).unwrap_or_default().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        rustix::io::write(&writer, b"x").expect("written");
        writer
    });
    let error = run(Stage::Prestart, Some(&stage), given).expect_err("given up");
    let writer = ctrl_c.join().expect("ended");
    assert!(error.message().contains("was killed: the start was canceled"), "{error}");
    assert!(is_gone(directory.path()));
    drop(writer);
}

#[test]
fn slow_readers_and_fast_writers_block_none() {
    let directory = directory();
    let state = format!("{STATE}{}", " ".repeat(4_000_000));
    let closes = script(directory.path(), "exec <&-; exit 0");
    let reads = script(directory.path(), "test $(cat | wc -c) -gt 4000000");
    let writes =
        script(directory.path(), "head -c 20000000 /dev/zero | tr '\\0' 'x'; echo; echo the end; exit 1");
    let list = json!([{"path": closes}, {"path": reads}, {"path": writes}]);
    let stage = hooks(Stage::Poststart, list);
    let error =
        run(Stage::Poststart, Some(&stage), given(directory.path(), &state)).expect_err("the last fails");
    assert_eq!(error.pointer(), Some("/hooks/poststart/2"));
    assert!(
        error.message().ends_with("\n  the end") && error.message().len() < 9_000,
        "{}",
        error.message().len()
    );
}

#[test]
fn what_a_hook_leaves_behind_is_not_waited_for() {
    let directory = directory();
    let path = script(directory.path(), "sleep 30 & echo $! > other; exit 0");
    let started = Instant::now();
    check(directory.path(), json!({"path": path})).expect("fine");
    assert!(started.elapsed() < Duration::from_secs(10));
    let pid = std::fs::read_to_string(directory.path().join("other")).expect("written");
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it lives on");
}

#[test]
fn only_files_that_no_other_user_can_change_run() {
    let directory = directory();
    let path = |name: &str| directory.path().join(name);
    let good = file(directory.path(), "good", b"#!/bin/sh\n");
    std::fs::create_dir(path("open")).expect("made");
    mode(&path("open"), 0o777);
    for (name, bits) in [("group", 0o775), ("all", 0o757), ("both", 0o777), ("plain", 0o644)] {
        mode(&file(directory.path(), name, b"#!/bin/sh\n"), bits);
    }
    file(&path("open"), "script", b"#!/bin/sh\n");
    file(&path("open"), "program", &std::fs::read("/bin/true").expect("readable"));
    file(directory.path(), "lost", b"#!/nowhere/sh\n");
    symlink(&good, path("link")).expect("made");
    symlink(path("open/script"), path("bad link")).expect("made");
    rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, 0o755.into(), 0)
        .expect("made");
    for (name, expected) in [
        ("good", None),
        ("link", None),
        ("open/program", None),
        ("none", Some("cannot be opened: no such file or directory (ENOENT)")),
        ("open", Some("is not a file")),
        ("fifo", Some("is not a file")),
        ("plain", Some("is not executable")),
        ("group", Some("is writable by group")),
        ("all", Some("is writable by every user")),
        ("both", Some("is writable by every user")),
        ("open/script", Some("open` is writable by every user")),
        ("bad link", Some("open` is writable by every user")),
        ("lost", Some("cannot be executed: no such file or directory (ENOENT)")),
    ] {
        match (check(directory.path(), json!({"path": path(name)})), expected) {
            (Ok(()), None) => {}
            (Err(error), Some(part)) if error.message().contains(part) && error.kind == Kind::Hook => {}
            (result, _) => panic!("{name}: {result:?}"),
        }
    }
    if jobc_test_skip::is_root() {
        std::os::unix::fs::chown(&good, Some(65534), None).expect("changed");
        let error = Program::open(&good).expect_err("another's");
        assert!(error.message().ends_with("belongs to user 65534, not to root or you"), "{error}");
    }
}

#[test]
fn what_config_json_says_wrongly_is_refused_at_its_place() {
    let directory = directory();
    for (hook, expected) in [
        (json!({"path": "bin/hook"}), "/path: the path `bin/hook` of a hook is not absolute"),
        (json!({"path": "/bin/true", "timeout": 0}), "/timeout: invalid hook timeout: 0 seconds"),
        (json!({"path": "/bin/true", "timeout": -1}), "/timeout: invalid hook timeout: -1 seconds"),
        (json!({"path": "/bin/true", "env": ["A=b", "nothing"]}), "/env/1: `nothing` is not NAME=VALUE"),
        (json!({"path": "/bin/true", "env": ["=b"]}), "/env/0: `=b` is not NAME=VALUE"),
    ] {
        let expected = format!("config.json: /hooks/createRuntime/0{expected}");
        assert_eq!(text(check(directory.path(), hook)), expected);
    }
}
