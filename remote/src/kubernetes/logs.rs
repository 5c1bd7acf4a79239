//! The output of pods, followed without loss or doubles over cut connections.
//!
//! The server cuts `sinceTime` to whole seconds. So a stream goes on at the second of the last line, and as many lines
//! of that second are left out as were passed on before.

use std::io::{BufRead as _, BufReader};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use jobc_registry::http::Backoff;

use super::client::{Client, encode};
use super::pods::Pod;
use super::status::ApiError;

/// A stream on which nothing arrives is opened again after this time: it may be dead.
const IDLE: Duration = Duration::from_mins(2);
/// Lines are passed on in pieces of this size.
const MAX_LINE: u64 = 1 << 20;

/// Output of a pod on its way to the user.
#[derive(Debug)]
pub(crate) enum Output {
    Line {
        uid: String,
        time: String,
        text: Vec<u8>,
    },
    Remark {
        uid: String,
        text: String,
    },
    /// All of it was read.
    End,
}

/// Where a stream goes on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The time of the last line up to its second, `2026-01-01T00:00:00`, and its zone.
    second: Option<(String, String)>,
    /// How many lines of that second were passed on.
    seen: u64,
}

/// What to do with a line that a stream brings.
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
}

impl Position {
    /// What a new connection asks for.
    pub(crate) fn since(&self) -> Option<String> {
        self.second.as_ref().map(|(second, zone)| format!("{second}{zone}"))
    }

    pub(crate) fn resume(&self) -> Resumption {
        Resumption { left_out: self.seen, is_first: self.second.is_some() }
    }

    /// Decides about a line with this time, and moves on.
    pub(crate) fn step(&mut self, resumption: &mut Resumption, time: &str) -> Step {
        let (second, zone) = split(time);
        let same = self.second.as_ref().is_some_and(|(known, _)| known == second);
        let is_first = std::mem::replace(&mut resumption.is_first, false);
        if same && resumption.left_out > 0 {
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

/// How much of a pod's output is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    pub(crate) follow: bool,
    pub(crate) tail: Option<u64>,
    pub(crate) since: Option<String>,
}

/// Reads the output of a pod into a channel until it is complete. Ends silently if the receiver is gone.
pub(crate) fn read(client: &Client, pod: &Pod, extent: &Extent, output: &SyncSender<Output>) {
    if let Err(error) = read_all(client, pod, extent, output)
        && !matches!(error, ReadError::Closed)
    {
        let text = match error {
            ReadError::Api(error) => error.into_error("read its output").message,
            ReadError::Closed => String::new(),
        };
        let _ = output.send(Output::Remark { uid: pod.metadata.uid.clone(), text });
    }
    let _ = output.send(Output::End);
}

enum ReadError {
    Api(ApiError),
    /// The output is no longer read: the pipe is closed.
    Closed,
}

fn read_all(
    client: &Client,
    pod: &Pod,
    extent: &Extent,
    output: &SyncSender<Output>,
) -> Result<(), ReadError> {
    let namespace = &client.config().namespace;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{}", pod.metadata.name);
    let (mut position, mut backoff) = (Position::default(), Backoff::default());
    let mut last_pass = !extent.follow;
    loop {
        let since = position.since().or_else(|| extent.since.clone());
        let mut query = format!("container={}&timestamps=true&follow={}", pod.container(), !last_pass);
        if let Some(since) = since {
            query += &format!("&sinceTime={}", encode(&since));
        }
        if let (Some(lines), None) = (extent.tail, &position.second) {
            query += &format!("&tailLines={lines}");
        }
        let before = (position.second.clone(), position.seen);
        // A server answers the request of a quiet container with its first line only.
        let ended = match client.stream(&format!("{path}/log?{query}"), IDLE) {
            Ok(stream) => pass_on(stream, &pod.metadata.uid, &mut position, output)?,
            // The pod is gone, and its output with it.
            Err(error) if error.is(404) => return Ok(()),
            // Its container has not started, or its node is not reachable for a moment.
            Err(error) if error.is(400) || error.is(500) || error.is(502) => false,
            Err(error) => return Err(ReadError::Api(error)),
        };
        if last_pass && ended {
            return Ok(());
        }
        if before != (position.second.clone(), position.seen) {
            backoff.progressed();
        }
        // The end of a stream says nothing: only the state of the container does.
        match client.find::<Pod>(&path).map_err(ReadError::Api)? {
            Some(now) if now.metadata.uid == pod.metadata.uid && !now.has_ended() => {
                if let Some(delay) = backoff.failed(None) {
                    std::thread::sleep(delay);
                } else {
                    // A quiet task: its streams end without a line.
                    backoff.progressed();
                    std::thread::sleep(Duration::from_secs(5));
                }
            }
            Some(now) if now.metadata.uid == pod.metadata.uid => {
                if last_pass && !ended {
                    let Some(delay) = backoff.failed(None) else {
                        let text = "the server breaks off its output; some of it is missing".to_owned();
                        return send(output, Output::Remark { uid: pod.metadata.uid.clone(), text });
                    };
                    std::thread::sleep(delay);
                }
                // Once more for what was written between the end of the stream and that of the container.
                last_pass = true;
            }
            _ => return Ok(()),
        }
    }
}

/// Passes the lines of a stream on. Returns whether it ended cleanly.
fn pass_on(
    stream: impl std::io::Read,
    uid: &str,
    position: &mut Position,
    output: &SyncSender<Output>,
) -> Result<bool, ReadError> {
    let mut reader = BufReader::new(stream);
    let mut resumption = position.resume();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = std::io::Read::take(&mut reader, MAX_LINE).read_until(b'\n', &mut line);
        match read {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            // What came of this line comes again.
            Err(_) => return Ok(false),
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let split = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
        let time = String::from_utf8_lossy(&text[..split]).into_owned();
        let text = text.get(split + 1..).unwrap_or_default();
        match position.step(&mut resumption, &time) {
            Step::Skip => continue,
            Step::Show => {}
            Step::ShowAfterGap => {
                let text = format!("the server no longer has all lines before {time}");
                send(output, Output::Remark { uid: uid.to_owned(), text })?;
            }
        }
        send(output, Output::Line { uid: uid.to_owned(), time, text: text.to_vec() })?;
    }
}

fn send(output: &SyncSender<Output>, item: Output) -> Result<(), ReadError> {
    output.send(item).map_err(|_| ReadError::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs lines of connections through one position; a line is a time. Returns what is shown, `!` after a gap.
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
