//! Commands that read stdin, which a job gets from a pipe or a file, or with `-i` or `-it`.

use std::path::Path;

use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;
use rustix::stdio::stdin;
use rustix::termios::isatty;

use crate::runtime::piped_stdin::is_unread_file;

/// Programs that read stdin if they get no file.
const READERS: [&str; 13] =
    ["bash", "cat", "dash", "node", "perl", "python", "python3", "ruby", "sh", "sort", "tee", "wc", "zsh"];

/// The note about a command that reads stdin and did not get what is there.
pub(super) fn note(words: &[String]) -> Option<String> {
    let option = if reads_stdin(words) { option_for_stdin()? } else { return None };
    Some(format!("jobc: note: `{}` got no stdin; to pass it on, add `{option}` before `--`\n", words[0]))
}

/// Whether a command reads stdin: `-` names it, and so does no argument at all. Other commands may run in a script that is
/// itself on stdin.
fn reads_stdin(words: &[String]) -> bool {
    let [program, arguments @ ..] = words else { return false };
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    arguments.iter().any(|word| word == "-")
        || (name.is_some_and(|name| READERS.contains(&name)) && arguments.iter().all(|word| is_flag(word)))
}

/// A short option of one letter that does not end the program.
fn is_flag(word: &str) -> bool {
    word.len() == 2 && word.starts_with('-') && !["-V", "-h", "-v"].contains(&word)
}

/// The option that passes on our stdin, if there is something to pass on. Reads nothing of it.
fn option_for_stdin() -> Option<&'static str> {
    if isatty(stdin()) {
        return Some("-it");
    }
    let stat = fstat(stdin()).ok()?;
    let has_data = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => ioctl_fionread(stdin()).is_ok_and(|bytes| bytes > 0),
        _ => is_unread_file(&stat),
    };
    has_data.then_some("-i")
}

#[cfg(test)]
mod tests {
    use super::reads_stdin;

    #[test]
    fn commands_without_a_file_read_stdin() {
        let check = |line: &str| reads_stdin(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in ["python3", "/usr/bin/python3 -u", "bash -s", "cat", "python3 -", "tar xf -"] {
            assert!(check(line), "{line}");
        }
        for line in
            ["python3 train.py", "python3 -V", "python3 --version", "bash -c ls", "nvidia-smi", "cat a.txt"]
        {
            assert!(!check(line), "{line}");
        }
    }
}
