//! Markers around the output of a command on another host.
//!
//! Login shells run files of the user and of the site, and some of them print. A mark on each stream says where the
//! command's own output begins; a second one says where it ends, with the exit code: exit code 255 of ssh can be the
//! command's or the connection's, and only a command that ended has the second mark.

use std::hash::{BuildHasher as _, RandomState};

/// How much of the text before the first mark is kept, in bytes.
const MAX_NOISE: usize = 16 << 10;
/// The character before every mark: text has none.
const FIRST: u8 = 0x1e;

/// A text that no output has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    /// A mark that no other command has.
    pub(super) fn random() -> Self {
        let state = RandomState::new();
        Self(format!("{:016x}{:016x}", state.hash_one(1), state.hash_one(2)))
    }

    /// The shell command that prints the mark with a text after it. A shell that prints its commands does not print the
    /// mark with them.
    pub(super) fn command(&self, after: &str) -> String {
        format!(r#"printf '\036jobc-%s{after}\n' {}"#, self.0)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FIRST];
        bytes.extend_from_slice(format!("jobc-{}", self.0).as_bytes());
        bytes
    }
}

/// Takes the output of a command out of a stream.
#[derive(Debug)]
pub(super) struct Filter {
    mark: Vec<u8>,
    state: State,
    held: Vec<u8>,
    noise: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first mark.
    Before,
    /// In the line of the first mark.
    FirstLine,
    /// In the command's output.
    Output,
    /// After the second mark.
    After,
    /// After its exit code.
    Ended(i32),
}

impl Filter {
    pub(super) fn new(mark: &Mark) -> Self {
        Self { mark: mark.bytes(), state: State::Before, held: vec![], noise: vec![] }
    }

    /// Takes bytes of the stream, and adds those of the command to `output`.
    pub(super) fn feed(&mut self, bytes: &[u8], output: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        loop {
            match self.state {
                State::Before => {
                    let Some(at) = self.find() else {
                        let excess = self.held.len().saturating_sub(MAX_NOISE);
                        self.held.drain(..excess);
                        return;
                    };
                    self.noise = self.held[..at].to_vec();
                    self.held.drain(..at + self.mark.len());
                    self.state = State::FirstLine;
                }
                State::FirstLine => {
                    let Some(at) = self.held.iter().position(|byte| *byte == b'\n') else { return };
                    self.held.drain(..=at);
                    self.state = State::Output;
                }
                State::Output => {
                    let Some(at) = self.find() else {
                        let length = self.held.len() - self.length_of_partial_mark();
                        output.extend(self.held.drain(..length));
                        return;
                    };
                    output.extend_from_slice(&self.held[..at]);
                    self.held.drain(..at + self.mark.len());
                    self.state = State::After;
                }
                State::After => {
                    let Some(at) = self.held.iter().position(|byte| *byte == b'\n') else { return };
                    let code = String::from_utf8_lossy(&self.held[..at]);
                    self.state = State::Ended(code.trim().trim_start_matches(':').parse().unwrap_or(255));
                }
                State::Ended(_) => {
                    self.held.clear();
                    return;
                }
            }
        }
    }

    /// The stream has ended: what could have been the beginning of a mark is output.
    pub(super) fn finish(&mut self, output: &mut Vec<u8>) {
        if self.state == State::Output {
            output.append(&mut self.held);
        }
    }

    /// Whether the command has started.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Before | State::FirstLine)
    }

    /// The exit code, once the command has ended.
    pub(super) fn status(&self) -> Option<i32> {
        if let State::Ended(code) = self.state { Some(code) } else { None }
    }

    /// The text before the command, the end of it if it is long.
    pub(super) fn noise(&self) -> &[u8] {
        if self.state == State::Before { &self.held } else { &self.noise }
    }

    fn find(&self) -> Option<usize> {
        let mut from = 0;
        loop {
            let at = from + self.held[from..].iter().position(|byte| *byte == FIRST)?;
            if self.held[at..].starts_with(&self.mark) {
                return Some(at);
            }
            from = at + 1;
        }
    }

    /// How many bytes at the end can be the beginning of a mark.
    fn length_of_partial_mark(&self) -> usize {
        let window = self.held.len().saturating_sub(self.mark.len() - 1);
        let tail = &self.held[window..];
        let starts = (0..tail.len()).filter(|at| tail[*at] == FIRST);
        starts.map(|at| &tail[at..]).find(|end| self.mark.starts_with(end)).map_or(0, <[u8]>::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stream: &str, output: &str, status: Option<i32>, noise: &str) {
        let mark = Mark("0123".to_owned());
        let stream = stream.replace('@', "\u{1e}jobc-0123");
        // The result does not depend on how the stream is split.
        for size in [1, 2, 3, 7, 1000] {
            let mut filter = Filter::new(&mark);
            let mut found = Vec::new();
            stream.as_bytes().chunks(size).for_each(|piece| filter.feed(piece, &mut found));
            filter.finish(&mut found);
            assert_eq!(String::from_utf8(found).unwrap(), output, "{stream:?} by {size}");
            assert_eq!(filter.status(), status, "{stream:?} by {size}");
            assert_eq!(String::from_utf8_lossy(filter.noise()), noise, "{stream:?} by {size}");
        }
    }

    #[test]
    fn output_stands_between_the_marks() {
        check("@\na\nb\n@:0\n", "a\nb\n", Some(0), "");
        check("Welcome!\n@\na@:255\nlogout\n", "a", Some(255), "Welcome!\n");
        check("@\r\na\r\n@:7\r\n", "a\r\n", Some(7), "");
        check("no mark\n", "", None, "no mark\n");
        check("@\nlost", "lost", None, "");
        check("@\n\u{1e}jobc-01 \u{1e}@:1\n", "\u{1e}jobc-01 \u{1e}", Some(1), "");
        check("@\n\u{1e}job", "\u{1e}job", None, "");
        check("@\n@:3", "", None, "");
    }

    #[test]
    fn noise_is_bounded_and_a_shell_prints_the_mark() {
        let mark = Mark::random();
        let mut filter = Filter::new(&mark);
        let mut output = Vec::new();
        for _ in 0..100 {
            filter.feed(&[b'x'; 1024], &mut output);
        }
        assert_eq!((filter.noise().len(), output.len()), (MAX_NOISE, 0));
        let script = format!("set -x; {}; echo a; {}", mark.command(""), mark.command(":4"));
        let shell = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        filter.feed(&shell.stderr, &mut output);
        assert!(!filter.has_begun());
        filter.feed(&shell.stdout, &mut output);
        assert_eq!((&output[..], filter.status()), (&b"a\n"[..], Some(4)));
    }
}
