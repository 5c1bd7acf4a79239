//! Texts for how an attempt ended: the kernel's signals, and the exit codes of shells.

use jobc_schema::signal;

use crate::exit_code;

/// The exit code to which a shell adds the number of the signal that ended a command (POSIX, 2.8.2 Exit Status for
/// Commands).
const SIGNAL_BASE: u8 = 128;

/// How an attempt ended: `exit 3`, `killed by SIGSEGV (segmentation fault)`, `out of memory: used 2 GiB of 2 GiB`.
///
/// `signal` is the signal that ended its first process, such as `SIGSEGV`, and `reason` further information. `None` if
/// nothing is known.
pub fn describe(exit_code: Option<u8>, signal: Option<&str>, reason: Option<&str>) -> Option<String> {
    match (exit_code, signal, reason) {
        // A code above 128 only repeats what the reason explains.
        (Some(code), None, Some(reason)) if (1..=SIGNAL_BASE).contains(&code) => {
            Some(format!("exit {code}, {reason}"))
        }
        (_, _, Some(reason)) => Some(reason.to_owned()),
        (_, Some(signal), None) => Some(format!("killed by {}", with_meaning(signal))),
        (Some(code), None, None) => Some(match meaning(code) {
            Some(meaning) => format!("exit {code}: {meaning}"),
            None => format!("exit {code}"),
        }),
        (None, None, None) => None,
    }
}

/// The name of a signal, such as `SIGSEGV`.
pub fn signal_name(number: i32) -> String {
    signal::name(number).map_or_else(|| format!("signal {number}"), |name| format!("SIG{name}"))
}

/// `SIGSEGV (segmentation fault)`.
fn with_meaning(signal: &str) -> String {
    let meaning = match signal {
        "SIGILL" => "illegal instruction: was it built for another CPU?",
        "SIGABRT" => "aborted",
        "SIGBUS" => "bus error, often a full /dev/shm: see `shm`",
        "SIGFPE" => "arithmetic error",
        "SIGSEGV" => "segmentation fault",
        "SIGPIPE" => "a reader of the pipe closed",
        "SIGTRAP" => "trace trap",
        "SIGXCPU" => "CPU time limit",
        "SIGXFSZ" => "file size limit",
        "SIGSYS" => "a syscall that its seccomp filter rejects",
        _ => return signal.to_owned(),
    };
    format!("{signal} ({meaning})")
}

/// The meaning of a shell's exit code; `None` for codes of programs.
fn meaning(code: u8) -> Option<String> {
    match code {
        exit_code::NOT_EXECUTABLE => return Some("a command cannot be executed".to_owned()),
        exit_code::NOT_FOUND => return Some("a command was not found".to_owned()),
        _ => {}
    }
    let number = i32::from(code.checked_sub(SIGNAL_BASE)?);
    // Signals that end programs in practice; other numbers are more likely a program's own codes.
    match number {
        13 => Some("a reader of the pipe closed (SIGPIPE)".to_owned()),
        1..=9 | 11 | 14 | 15 | 24 | 25 | 31 => {
            Some(format!("a command was killed by {}", with_meaning(&signal_name(number))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_is_explained_once() {
        let ends = [
            (Some(0), None, None),
            (Some(3), None, None),
            (Some(139), Some("SIGSEGV"), None),
            (Some(137), Some("SIGKILL"), None),
            (Some(135), Some("SIGBUS"), None),
            (Some(164), Some("signal 36"), None),
            (Some(139), None, None),
            (Some(141), None, None),
            (Some(143), None, None),
            (Some(126), None, None),
            (Some(127), None, None),
            (Some(255), None, None),
            (Some(137), Some("SIGKILL"), Some("out of memory: used 64 MiB of 64 MiB")),
            (Some(137), None, Some("out of memory: used 64 MiB of 64 MiB")),
            (Some(1), None, Some("out of memory: used 64 MiB of 64 MiB")),
            (Some(0), None, Some("time limit 2s reached")),
            (None, None, Some("its supervisor was killed")),
        ];
        let shown: Vec<String> =
            ends.iter().filter_map(|&(code, signal, reason)| describe(code, signal, reason)).collect();
        assert_eq!(
            shown,
            [
                "exit 0",
                "exit 3",
                "killed by SIGSEGV (segmentation fault)",
                "killed by SIGKILL",
                "killed by SIGBUS (bus error, often a full /dev/shm: see `shm`)",
                "killed by signal 36",
                "exit 139: a command was killed by SIGSEGV (segmentation fault)",
                "exit 141: a reader of the pipe closed (SIGPIPE)",
                "exit 143: a command was killed by SIGTERM",
                "exit 126: a command cannot be executed",
                "exit 127: a command was not found",
                "exit 255",
                "out of memory: used 64 MiB of 64 MiB",
                "out of memory: used 64 MiB of 64 MiB",
                "exit 1, out of memory: used 64 MiB of 64 MiB",
                "time limit 2s reached",
                "its supervisor was killed",
            ]
        );
        assert_eq!(describe(None, None, None), None);
        assert_eq!([signal_name(11), signal_name(40)], ["SIGSEGV", "signal 40"]);
    }
}
