//! Where the output of a pod resumes after a lost connection, without loss or duplicates.
//!
//! The server truncates `sinceTime` to whole seconds. So a stream resumes at the second of the last line, and skips the
//! lines of that second that were already forwarded.

/// Where a stream goes on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The time of the last line up to its second, `2026-01-01T00:00:00`, and its zone.
    second: Option<(String, String)>,
    /// How many lines of that second were passed on.
    seen: u64,
}

/// The action for a line of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Show,
    Skip,
    /// The line is newer than what should have come first.
    ShowAfterGap,
}

/// A connection's view of a position.
#[derive(Debug)]
pub(crate) struct Resumption {
    left_out: u64,
    is_first: bool,
    /// Whether the last line was left out, and with it the other pieces of a very long one.
    pub(crate) is_skipping: bool,
}

impl Position {
    /// The request of a new connection.
    pub(crate) fn since(&self) -> Option<String> {
        self.second.as_ref().map(|(second, zone)| format!("{second}{zone}"))
    }

    /// Whether any line was passed on.
    pub(crate) fn has_begun(&self) -> bool {
        self.second.is_some()
    }

    /// The time of the last line up to its second.
    pub(crate) fn time(&self) -> &str {
        self.second.as_ref().map_or("", |(second, _)| second)
    }

    pub(crate) fn resume(&self) -> Resumption {
        Resumption { left_out: self.seen, is_first: self.second.is_some(), is_skipping: false }
    }

    /// Decides about a line with this time, and moves on.
    pub(crate) fn step(&mut self, resumption: &mut Resumption, time: &str) -> Step {
        let (second, zone) = split(time);
        let same = self.second.as_ref().is_some_and(|(known, _)| known == second);
        let is_first = std::mem::replace(&mut resumption.is_first, false);
        resumption.is_skipping = same && resumption.left_out > 0;
        if resumption.is_skipping {
            resumption.left_out -= 1;
            return Step::Skip;
        }
        // A line of the last second must come again, unless the server has dropped it.
        let gap = is_first && !same;
        resumption.left_out = 0;
        if same {
            self.seen += 1;
        } else {
            self.second = Some((second.to_owned(), zone.to_owned()));
            self.seen = 1;
        }
        if gap { Step::ShowAfterGap } else { Step::Show }
    }
}

/// The time up to the second, and its zone.
fn split(time: &str) -> (&str, &str) {
    let Some((second, rest)) = time.split_at_checked(19) else { return (time, "Z") };
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    (second, if zone.is_empty() { "Z" } else { zone })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs lines of connections through one position; a line is a time. Returns the output, `!` after a gap.
    fn shown(connections: &[&[&str]]) -> Vec<String> {
        let mut position = Position::default();
        let mut out = Vec::new();
        for lines in connections {
            let mut resumption = position.resume();
            for time in *lines {
                match position.step(&mut resumption, time) {
                    Step::Skip => {}
                    Step::Show => out.push((*time).to_owned()),
                    Step::ShowAfterGap => out.push(format!("!{time}")),
                }
            }
        }
        out
    }

    const A1: &str = "2026-01-01T00:00:01.100000000Z";
    const A2: &str = "2026-01-01T00:00:01.900000000Z";
    const B1: &str = "2026-01-01T00:00:02.000000001Z";
    const B2: &str = "2026-01-01T00:00:02.5Z";
    const C: &str = "2026-01-01T00:00:03Z";

    #[test]
    fn a_stream_goes_on_without_loss_or_doubles() {
        assert_eq!(shown(&[&[A1, A2, B1], &[B1, B2, C], &[C]]), [A1, A2, B1, B2, C]);
        // Equal times are different lines.
        assert_eq!(shown(&[&[A1, A1], &[A1, A1, A1, B1]]), [A1, A1, A1, B1]);
        assert_eq!(shown(&[&[], &[A1]]), [A1]);
    }

    #[test]
    fn lost_lines_are_noticed() {
        assert_eq!(shown(&[&[A1, A2], &[B1, B2]]), [A1, A2, &format!("!{B1}"), B2]);
    }

    #[test]
    fn a_connection_asks_for_the_second_of_the_last_line() {
        for (time, since) in
            [(B2, "2026-01-01T00:00:02Z"), ("2026-01-01T01:00:02.123+01:00", "2026-01-01T01:00:02+01:00")]
        {
            let mut position = Position::default();
            position.step(&mut position.resume(), time);
            assert_eq!(position.since().as_deref(), Some(since));
        }
    }
}
