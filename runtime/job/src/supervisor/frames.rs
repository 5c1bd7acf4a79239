//! The lines of an agent within the output of its task.

use crate::node::agent::MARK;

/// The byte that begins a line of the agent, wherever in a line of the program it is.
const FIRST: u8 = 0x1e;

/// A longer line is not one of the agent's.
const MAX_BYTES: usize = 256;

/// Takes the agent's lines out of what is read.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// What may be the beginning of such a line.
    held: Vec<u8>,
}

impl Frames {
    /// What the program wrote; `found` gets the agent's lines, without their mark.
    pub(super) fn split(&mut self, bytes: &[u8], found: &mut dyn FnMut(&str)) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        rest.extend_from_slice(bytes);
        let mut own = Vec::with_capacity(rest.len());
        let mut rest = &rest[..];
        while let Some(at) = rest.iter().position(|&byte| byte == FIRST) {
            own.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let common = rest.len().min(MARK.len());
            let end = rest.iter().take(MAX_BYTES).position(|&byte| byte == b'\n');
            match end {
                _ if rest[..common] != MARK.as_bytes()[..common] => {
                    own.push(FIRST);
                    rest = &rest[1..];
                }
                Some(end) => {
                    found(&String::from_utf8_lossy(&rest[MARK.len().min(end)..end]));
                    rest = &rest[end + 1..];
                }
                None if rest.len() < MAX_BYTES => {
                    self.held = rest.to_vec();
                    return own;
                }
                None => {
                    own.push(FIRST);
                    rest = &rest[1..];
                }
            }
        }
        own.extend_from_slice(rest);
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_agent_are_taken_out_wherever_they_are() {
        let text = b"a\n\x1ejobc started 7\nhalf \x1ejobc ready\na line\n\x1e other \x1e\x1ejobc ended 3 0\n";
        for size in [1, 2, 5, 1000] {
            let (mut frames, mut lines, mut own) = (Frames::default(), vec![], vec![]);
            for piece in text.chunks(size) {
                own.extend(frames.split(piece, &mut |line| lines.push(line.to_owned())));
            }
            assert_eq!(String::from_utf8_lossy(&own), "a\nhalf a line\n\u{1e} other \u{1e}", "{size}");
            assert_eq!(lines, ["started 7", "ready", "ended 3 0"], "{size}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_the_programs() {
        let long = format!("{MARK}{}", "x".repeat(MAX_BYTES));
        let own = Frames::default().split(long.as_bytes(), &mut |line| panic!("{line}"));
        assert_eq!(own, long.as_bytes());
    }
}
