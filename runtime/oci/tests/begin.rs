//! How the small binary begins, which does without the standard library's own beginning.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_jobc-oci");

/// Runs a line of sh(1) in which `$0` is the program and `$1` a directory.
fn shell(line: &str, directory: &std::path::Path) -> Output {
    Command::new("sh").args(["-c", line, PROGRAM]).arg(directory).output().expect("sh")
}

#[test]
fn the_words_of_the_command_line_arrive() {
    // Callers give their own options to every call.
    let version =
        Command::new(PROGRAM).args(["--root", "/nowhere", "--version"]).output().expect("the program");
    assert!(version.status.success());
    assert_eq!(
        String::from_utf8_lossy(&version.stdout),
        format!(
            "jobc version {}\nspec: 1.3.0\n+SYSTEMD +SELINUX +APPARMOR +CAP +SECCOMP +EBPF\n",
            env!("CARGO_PKG_VERSION")
        )
    );
    let wrong = Command::new(PROGRAM).args(["fly", "now"]).output().expect("the program");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("unrecognized subcommand 'fly'"));
}

#[test]
fn nothing_that_is_printed_goes_into_a_file_that_got_a_closed_streams_number() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = r#"exec "$0" --root "$1" --log "$1/log" state nobody <&- >&- 2>&-"#;
    let output = shell(line, directory.path());
    assert_eq!(output.status.code(), Some(1));
    let log = std::fs::read_to_string(directory.path().join("log")).expect("the log");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("level=error"), "{log}");
}

#[test]
fn a_reader_that_went_away_is_no_end_by_a_signal() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = Command::new(PROGRAM).arg("features").stdout(Stdio::from(writer)).status();
    assert_eq!(status.expect("the program").code(), Some(0));
}

#[test]
fn a_container_cannot_be_saved_even_if_only_help_is_requested() {
    // podman asks so whether it can.
    for words in
        [&["checkpoint", "--help"][..], &["checkpoint", "--image-path", "/x", "a"], &["restore", "-h"]]
    {
        let output = Command::new(PROGRAM).args(words).output().expect("the program");
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("not supported"));
    }
}
