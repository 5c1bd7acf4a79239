//! The script that runs a command on another host.

use super::marks::Mark;
use jobc_schema::shell;

/// The input of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// The data sent to it.
    Input,
    /// Nothing. Its standard input then tells whether the other side still wants it.
    Nothing,
    /// A terminal, which is also where all of its output goes.
    Terminal,
}

/// The script: marks, the command, its exit code. It begins in the home directory.
///
/// sshd does not end a command whose connection is gone before it writes. So that none stays behind, a command that
/// reads nothing gets SIGTERM at the end of its input; a terminal ends its programs by itself.
pub(super) fn of(command: &[&str], mark: &Mark, reads: Reads) -> String {
    let words = shell::join(command.iter().copied());
    let (begin, end) = (mark.command(""), mark.command(":$s").replace('\'', "\""));
    let both = |print: &str| match reads {
        Reads::Terminal => print.to_owned(),
        _ => format!("{print} >&2; {print}"),
    };
    let run = match reads {
        Reads::Input | Reads::Terminal => format!("{words}; s=$?"),
        Reads::Nothing => format!(
            "exec 3<&0; {words} 3<&- </dev/null & p=$!; (cat; kill $p) <&3 >/dev/null 2>&1 & c=$!; \
             exec 3<&-; wait $p; s=$?; kill $c 2>/dev/null"
        ),
    };
    // Profiles may have gone elsewhere.
    format!("cd >/dev/null 2>&1; {}; {run}; {}; exit $s", both(&begin), both(&end))
}

#[cfg(test)]
mod tests {
    use super::super::quote;
    use super::*;
    use crate::host::marks::Filter;
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    /// The output of a command as its filters see it: standard output, standard error, and exit code.
    fn check(command: &[&str], reads: Reads, input: &str) -> (String, String, Option<i32>) {
        let mark = Mark::random();
        let text = quote::for_login_shell(&of(command, &mark, reads), false);
        let mut shell = Command::new("sh")
            .args(["-c", &text])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = shell.stdin.take().unwrap();
        let _ = stdin.write_all(input.as_bytes());
        // A command that reads nothing must not see the end before its own.
        let stdin = (reads == Reads::Nothing).then_some(stdin);
        let output = shell.wait_with_output().unwrap();
        drop(stdin);
        let mut filters = [Filter::new(&mark), Filter::new(&mark)];
        let mut found = [vec![], vec![]];
        filters[0].feed(&output.stdout, &mut found[0]);
        filters[1].feed(&output.stderr, &mut found[1]);
        assert_eq!(filters[0].status(), output.status.code());
        let [stdout, stderr] = found.map(|bytes| String::from_utf8(bytes).unwrap());
        (stdout, stderr, filters[0].status())
    }

    #[test]
    fn output_and_exit_code_are_the_commands() {
        for reads in [Reads::Input, Reads::Nothing] {
            let found = check(&["sh", "-c", "echo 'a b'; echo e >&2; exit 255"], reads, "");
            assert_eq!(found, ("a b\n".to_owned(), "e\n".to_owned(), Some(255)), "{reads:?}");
            assert_eq!(check(&["no-such-program"], reads, "").2, Some(127), "{reads:?}");
        }
        assert_eq!(check(&["cat"], Reads::Input, "x'y").0, "x'y");
        assert_eq!(check(&["cat"], Reads::Nothing, "x").0, "");
        assert_eq!(check(&["printf", "%s", "100%"], Reads::Terminal, "").0, "100%");
        assert_eq!(check(&["sh", "-c", r#"[ "$PWD" -ef "$HOME" ]"#], Reads::Nothing, "").2, Some(0));
    }

    #[test]
    fn a_command_that_reads_nothing_ends_with_the_connection() {
        let mark = Mark::random();
        let script = of(&["sleep", "60"], &mark, Reads::Nothing);
        let start = Instant::now();
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(shell.stdin.take());
        assert_eq!(shell.wait().unwrap().code(), Some(143));
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
