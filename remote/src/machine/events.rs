//! Events of jobs, as `jobc events` prints them.

use crate::place::Event;

/// Reads a line; none for measurements, which come too often.
pub(super) fn read(line: &str) -> Option<Event> {
    serde_json::from_str::<Event>(line).ok().filter(|event| event.event != "sampled")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_printed() {
        let event = read(
            r#"{"time":"t","event":"ended","task":"main-1","attempt":2,"is_warning":true,"message":"exit 1","detail":{"exit_code":1}}"#,
        )
        .unwrap();
        assert_eq!((event.task.as_deref(), event.attempt, event.is_warning), (Some("main-1"), Some(2), true));
        assert_eq!((event.event.as_str(), event.message.as_str()), ("ended", "exit 1"));
        assert!(read(r#"{"time":"t","event":"sampled","task":"a-0","detail":{}}"#).is_none());
        assert!(read("not JSON").is_none());
    }
}
