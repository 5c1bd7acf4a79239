//! Reading events while they are appended.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use super::Event;
use crate::directory::Directory;

/// A job's events, from the first on.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line whose end was not there yet.
    rest: Vec<u8>,
}

impl Reader {
    /// The events of a job, whose file need not be there yet.
    pub fn new(directory: &Directory) -> Self {
        Self { path: directory.events_file(), file: None, rest: vec![] }
    }

    /// Those that were appended since the last call. A line that is not an event is skipped.
    pub fn read(&mut self) -> io::Result<Vec<Event>> {
        let file = match &mut self.file {
            Some(file) => file,
            None => match File::open(&self.path) {
                Ok(file) => self.file.insert(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
                Err(error) => return Err(error),
            },
        };
        file.read_to_end(&mut self.rest)?;
        let whole = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let lines = self.rest[..whole].split(|&byte| byte == b'\n');
        let events = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        self.rest.drain(..whole);
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EventLog, Kind};
    use super::*;
    use crate::directory::JobDirectories;

    #[test]
    fn events_are_read_once_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let places = JobDirectories { state: dir.path().join("s"), records: dir.path().join("r") };
        let directory = places.create("a").unwrap();
        let mut reader = Reader::new(&directory);
        assert_eq!(reader.read().unwrap(), []);
        let event = Event::of_job(Kind::Paused, serde_json::Value::Null);
        let mut events = EventLog::open(&directory).unwrap();
        events.push(&event).unwrap();
        assert_eq!(reader.read().unwrap(), std::slice::from_ref(&event));
        let text = std::fs::read_to_string(directory.events_file()).unwrap();
        let (first, second) = text.split_at(text.len() / 2);
        std::fs::write(directory.events_file(), format!("{text}no event\n{first}")).unwrap();
        assert_eq!(reader.read().unwrap(), []);
        std::fs::write(directory.events_file(), format!("{text}no event\n{first}{second}")).unwrap();
        assert_eq!(reader.read().unwrap(), [event]);
    }
}
