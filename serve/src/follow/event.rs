//! Lines as server-sent events.

/// How lines become events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Lines of a log, by their times.
    Log,
    /// Events of a job, by their numbers.
    Events,
    /// Measurements, by their numbers.
    Samples,
}

/// The end of a stream.
pub(crate) const END: &str = "event: end\ndata: {}\n\n";
/// Keeps a connection open, and finds out that it is not.
pub(crate) const KEEP_ALIVE: &str = ": \n\n";

/// Where a line of a log has its time, its job and its task.
const HEAD_BYTES: usize = 600;

/// The lines that a slow follower has missed.
pub(crate) fn gap(lines: u64) -> String {
    format!("event: gap\ndata: {{\"lines\":{lines}}}\n\n")
}

/// What a follower has seen last: the time of a line of a log and how many lines of that time came before it, or a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) time: String,
    pub(crate) number: u64,
}

impl Id {
    /// The ID of an event; none if it is not one of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (time, number) = text.split_once('_').unwrap_or(("", text));
        let is_time =
            time.len() <= 40 && time.bytes().all(|byte| byte.is_ascii_digit() || b"-:.TZ+".contains(&byte));
        (is_time && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| Some(Self { time: time.to_owned(), number: number.parse().ok()? }))
            .flatten()
    }
}

/// Writes events, and numbers them.
pub(crate) struct Events {
    format: Format,
    last: Id,
    has_any: bool,
}

impl Events {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, last: Id::default(), has_any: false }
    }

    /// The ID of the last event.
    pub(crate) fn last(&self) -> Option<&Id> {
        self.has_any.then_some(&self.last)
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let time = if self.format == Format::Log { time_of(line) } else { "" };
        if time == self.last.time && self.has_any {
            self.last.number += 1;
        } else {
            time.clone_into(&mut self.last.time);
            self.last.number = 0;
        }
        self.has_any = true;
        let name = match self.format {
            Format::Log => "line",
            Format::Events => "event",
            Format::Samples => "sample",
        };
        out.extend_from_slice(b"id: ");
        if !time.is_empty() {
            out.extend_from_slice(time.as_bytes());
            out.push(b'_');
        }
        out.extend_from_slice(format!("{}\nevent: {name}\ndata: ", self.last.number).as_bytes());
        // A program that is killed may leave half a line, never one with a return.
        out.extend(line.iter().filter(|byte| !b"\r\n".contains(byte)));
        out.extend_from_slice(b"\n\n");
    }
}

/// The time of a line of a log, which is its first field.
pub(crate) fn time_of(line: &[u8]) -> &str {
    let rest = line.strip_prefix(b"{\"time\":\"").unwrap_or_default();
    let end = rest.iter().take(40).position(|&byte| byte == b'"').unwrap_or_default();
    std::str::from_utf8(&rest[..end]).unwrap_or_default()
}

/// The task of a line of a log, which follows its job.
pub(crate) fn task_of(line: &[u8]) -> &str {
    let name = b"\",\"task\":\"";
    let head = &line[..line.len().min(HEAD_BYTES)];
    let Some(at) = head.windows(name.len()).position(|bytes| bytes == name) else { return "" };
    let rest = &head[at + name.len()..];
    let end = rest.iter().position(|&byte| byte == b'"').unwrap_or_default();
    std::str::from_utf8(&rest[..end]).unwrap_or_default()
}

/// The events of a text, whole.
pub(crate) fn each(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.windows(2).position(|two| two == b"\n\n")? + 2;
        let (event, after) = rest.split_at(end);
        rest = after;
        Some(event)
    })
}

/// The line in an event.
pub(crate) fn line_of(event: &[u8]) -> &[u8] {
    let data = b"\ndata: ";
    let at =
        event.windows(data.len()).position(|bytes| bytes == data).map_or(event.len(), |at| at + data.len());
    event[at..].strip_suffix(b"\n\n").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time: &str, text: &str) -> String {
        format!("{{\"time\":\"{time}\",\"job\":\"a.1\",\"task\":\"main-0\",\"text\":\"{text}\"}}")
    }

    #[test]
    fn lines_of_one_time_have_numbers() {
        let mut events = Events::new(Format::Log);
        let mut out = vec![];
        for (time, text) in [
            ("2026-01-01T00:00:00.000001Z", "a"),
            ("2026-01-01T00:00:00.000001Z", "b"),
            ("2026-01-02T00:00:00.000001Z", "c"),
        ] {
            events.add(line(time, text).as_bytes(), &mut out);
        }
        let ids: Vec<_> =
            each(&out).map(|event| std::str::from_utf8(event).unwrap().lines().next().unwrap()).collect();
        assert_eq!(
            ids,
            [
                "id: 2026-01-01T00:00:00.000001Z_0",
                "id: 2026-01-01T00:00:00.000001Z_1",
                "id: 2026-01-02T00:00:00.000001Z_0"
            ]
        );
        let first = each(&out).next().unwrap();
        assert_eq!(line_of(first), line("2026-01-01T00:00:00.000001Z", "a").as_bytes());
        assert_eq!(
            (time_of(line_of(first)), task_of(line_of(first))),
            ("2026-01-01T00:00:00.000001Z", "main-0")
        );
    }

    #[test]
    fn other_lines_are_numbered_from_0() {
        let mut events = Events::new(Format::Events);
        let mut out = vec![];
        events.add(b"{}", &mut out);
        events.add(b"{\"a\": 1}", &mut out);
        assert_eq!(out, b"id: 0\nevent: event\ndata: {}\n\nid: 1\nevent: event\ndata: {\"a\": 1}\n\n");
        assert_eq!(events.last(), Some(&Id { time: String::new(), number: 1 }));
    }

    #[test]
    fn an_id_is_a_time_and_a_number() {
        let id = Id::parse("2026-01-01T00:00:00.000001Z_12").unwrap();
        assert_eq!((id.time.as_str(), id.number), ("2026-01-01T00:00:00.000001Z", 12));
        assert_eq!(Id::parse("7").unwrap().number, 7);
        for text in ["", "_", "x", "--help_1", "1_", "2026 _1", "1_-1", "99999999999999999999999"] {
            assert_eq!(Id::parse(text), None, "{text}");
        }
    }
}
