//! Pipes that close, and colors.

use crate::directory::{Directory, HELLO, Run, binary, command};

const ESCAPE: char = '\u{1b}';

#[test]
fn a_closed_pipe_is_not_an_error() {
    let directory = Directory::with_job(HELLO);
    for line in [
        "\"$JOBC\" build --stdout --set count=400",
        "\"$JOBC\" explain",
        "\"$JOBC\" schema",
        "\"$JOBC\" plan",
        "\"$JOBC\" man",
        "\"$JOBC\" completions zsh",
    ] {
        let run = directory.bash(&format!("{line} | head -1; echo ${{PIPESTATUS[0]}} >&2"));
        assert_eq!(run.err, "0\n", "{line}");
        assert_eq!(run.out.lines().count(), 1, "{line}");
    }
    // Neither pipe has a reader.
    let run = directory.bash("\"$JOBC\" check absent.yaml 2>&-; echo $?; \"$JOBC\" schema >&-; echo $?");
    assert!(run.out.starts_with("2\n"), "{}", run.out);
    assert!(!run.err.contains("panicked"), "{}", run.err);
}

#[test]
fn a_full_device_is_an_error() {
    let directory = Directory::with_job(HELLO);
    directory.bash("\"$JOBC\" schema > /dev/full").exits(3).says("cannot write to standard output");
}

fn wrong() -> Directory {
    Directory::with_job(&HELLO.replace("cpu: 1,", "cpus: 1,"))
}

#[test]
fn a_pipe_gets_no_colors() {
    let directory = wrong();
    let colorful = |run: Run| format!("{}{}", run.out, run.err).contains(ESCAPE);
    assert!(!colorful(directory.jobc(&["check"])));
    assert!(colorful(directory.jobc(&["check", "--color", "always"])));
    assert!(colorful(directory.jobc(&["check", "--colour", "always"])));
    assert!(colorful(Run::of(directory.command(binary()).arg("check").env("JOBC_COLOR", "always"))));
    // The command line takes precedence over the environment.
    assert!(colorful(Run::of(
        directory.command(binary()).args(["check", "--color", "always"]).env("NO_COLOR", "1")
    )));
    assert!(!colorful(directory.jobc(&["check", "--color", "never"])));
    directory.jobc(&["check", "--color", "sometimes"]).exits(2);
    // Programs get none, whatever was asked for.
    for format in ["json", "sarif", "github", "short"] {
        assert!(!colorful(directory.jobc(&["check", "--color", "always", "--format", format])), "{format}");
    }
}

/// `script` gives the command its own terminal.
#[test]
fn a_terminal_gets_colors_unless_no_color_is_set() {
    if !command("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        jobc_test_skip::skip("script");
        return;
    }
    let directory = wrong();
    let on_terminal = |environment: &[(&str, &str)]| {
        let mut script = directory.command("script");
        script
            .args(["-qec", "stty cols 100; \"$JOBC\" check", "/dev/null"])
            .env("JOBC", binary())
            .env("TERM", "xterm-256color")
            .envs(environment.iter().copied());
        Run::of(&mut script)
    };
    let run = on_terminal(&[]);
    assert!(run.out.contains(ESCAPE), "{}", run.out);
    assert_eq!(run.code, Some(1));
    for line in run.out.lines() {
        assert!(line.chars().filter(|c| !c.is_control()).count() < 200, "{line}");
    }
    assert!(!on_terminal(&[("NO_COLOR", "1")]).out.contains(ESCAPE));
    assert!(!on_terminal(&[("TERM", "dumb")]).out.contains(ESCAPE));
}
