//! The output of one attempt of a task, read again and again as it grows.
//!
//! The log manager keeps the newest 16 MB of a task in a file, and what was before in one more (pai,
//! `src/log-manager/src/nginx`). It serves ranges of bytes, so that only what is new is read. The last bytes of what was
//! shown are read once more each time: if they changed, the file was begun anew, and what is missing is in the other one.

use std::collections::BTreeMap;

use super::api::LogList;
use super::client::{Client, Piece};
use super::status::ApiError;

/// How many bytes are compared with what was shown.
const OVERLAP: usize = 64;

/// What is read.
pub(crate) enum Output<'a> {
    /// A line without its end.
    Line(&'a [u8]),
    /// Something about the output.
    Remark(&'a str),
}

/// The output of an attempt.
#[derive(Default)]
pub(crate) struct Reader {
    /// The addresses of the files by name; they expire.
    addresses: Option<BTreeMap<String, String>>,
    files: BTreeMap<String, Position>,
    pub(crate) is_done: bool,
}

/// How much of a file was shown.
#[derive(Default)]
struct Position {
    offset: u64,
    /// The last bytes before the offset.
    last: Vec<u8>,
    /// The beginning of a line whose end was not written yet.
    partial: Vec<u8>,
}

impl Reader {
    /// Whether nothing was read yet.
    pub(crate) fn is_new(&self) -> bool {
        self.files.is_empty()
    }

    /// Shows what is new. `list` is the path of the list of files.
    pub(crate) fn poll(
        &mut self,
        client: &Client,
        list: &str,
        show: &mut dyn FnMut(Output<'_>),
    ) -> Result<(), ApiError> {
        if !list.starts_with("/api/") {
            if self.files.insert(String::new(), Position::default()).is_none() {
                let page = if list.starts_with('/') { &client.access().portal } else { "" };
                show(Output::Remark(&format!(
                    "this release of OpenPAI shows output in a browser: {page}{list}"
                )));
            }
            return Ok(());
        }
        if self.addresses.is_none() {
            self.list(client, list)?;
        }
        for name in self.names() {
            self.poll_file(client, list, &name, show)?;
        }
        Ok(())
    }

    /// Shows what is left of the last lines, and whether there was no output at all.
    pub(crate) fn finish(&mut self, show: &mut dyn FnMut(Output<'_>)) {
        self.is_done = true;
        for position in self.files.values_mut() {
            if !position.partial.is_empty() {
                show(Output::Line(&std::mem::take(&mut position.partial)));
            }
        }
        if self.files.is_empty() {
            show(Output::Remark("the server has no output of it"));
        }
    }

    fn list(&mut self, client: &Client, list: &str) -> Result<(), ApiError> {
        let found: Option<LogList> = client.find(list)?;
        self.addresses = found
            .map(|list| list.locations.into_iter().map(|location| (location.name, location.uri)).collect());
        Ok(())
    }

    /// The files to read: stdout and stderr in one, or each.
    fn names(&self) -> Vec<String> {
        let Some(addresses) = &self.addresses else { return vec![] };
        let names: &[&str] = if addresses.contains_key("all") { &["all"] } else { &["stdout", "stderr"] };
        names.iter().filter(|name| addresses.contains_key(**name)).map(|name| (*name).to_owned()).collect()
    }

    /// Reads a file; addresses that have expired are asked for again.
    fn read(&mut self, client: &Client, list: &str, name: &str, from: u64) -> Result<Piece, ApiError> {
        for _ in 0..2 {
            if self.addresses.is_none() {
                self.list(client, list)?;
            }
            let address = self.addresses.as_ref().and_then(|addresses| addresses.get(name));
            let Some(address) = address else { return Ok(Piece::Absent) };
            match client.piece(address, from)? {
                Piece::Expired => self.addresses = None,
                piece => return Ok(piece),
            }
        }
        Ok(Piece::Expired)
    }

    fn poll_file(
        &mut self,
        client: &Client,
        list: &str,
        name: &str,
        show: &mut dyn FnMut(Output<'_>),
    ) -> Result<(), ApiError> {
        let before = format!("{name}.1");
        let mut position = if let Some(position) = self.files.remove(name) {
            position
        } else {
            let mut position = Position::default();
            if let Piece::From(bytes) = self.read(client, list, &before, 0)? {
                position.show(&bytes, show);
                position.begin_anew();
            }
            position
        };
        let mut piece = self.read(client, list, name, position.from());
        if let Ok(found) = &piece
            && position.is_anew(found)
        {
            // The older file may be new to the list.
            self.addresses = None;
            match self.read(client, list, &before, position.from())? {
                Piece::From(bytes) if bytes.starts_with(&position.last) => {
                    position.show(&bytes[position.last.len()..], show);
                }
                _ => show(Output::Remark("the server no longer has all of the output")),
            }
            position.begin_anew();
            piece = self.read(client, list, name, 0);
        }
        if let Ok(Piece::From(bytes)) = &piece {
            position.show(&bytes[position.last.len()..], show);
        }
        self.files.insert(name.to_owned(), position);
        piece.map(drop)
    }
}

impl Position {
    /// The first byte to read.
    fn from(&self) -> u64 {
        self.offset - self.last.len() as u64
    }

    /// Whether the file is not the one that was shown.
    fn is_anew(&self, piece: &Piece) -> bool {
        match piece {
            Piece::From(bytes) => !bytes.starts_with(&self.last),
            Piece::Beyond => self.offset > 0,
            Piece::Absent | Piece::Expired => false,
        }
    }

    fn begin_anew(&mut self) {
        self.offset = 0;
        self.last.clear();
    }

    /// Shows the lines of further bytes.
    fn show(&mut self, bytes: &[u8], show: &mut dyn FnMut(Output<'_>)) {
        self.offset += bytes.len() as u64;
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(OVERLAP)..]);
        self.last.drain(..self.last.len().saturating_sub(OVERLAP));
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if let Some(line) = self.partial.strip_suffix(b"\n") {
                show(Output::Line(line.strip_suffix(b"\r").unwrap_or(line)));
                self.partial.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_is_not_shown_again() {
        let mut position = Position::default();
        let mut lines = Vec::new();
        let mut show = |bytes: &[u8]| {
            position.show(bytes, &mut |output| {
                if let Output::Line(line) = output {
                    lines.push(String::from_utf8_lossy(line).into_owned());
                }
            });
            (position.from(), position.last.clone(), position.partial.clone())
        };
        assert_eq!(show(b"one\r\ntw"), (0, b"one\r\ntw".to_vec(), b"tw".to_vec()));
        let long = [b"o\n".to_vec(), vec![b'x'; 100]].concat();
        assert_eq!(show(&long).0, 7 + 102 - 64);
        assert_eq!(lines, ["one", "two"]);
    }

    #[test]
    fn a_file_that_was_begun_anew_is_noticed() {
        let mut position = Position::default();
        assert!(!position.is_anew(&Piece::Beyond) && !position.is_anew(&Piece::From(b"x".to_vec())));
        position.show(b"abc", &mut |_| {});
        assert!(!position.is_anew(&Piece::From(b"abcd".to_vec())));
        assert!(position.is_anew(&Piece::From(b"new".to_vec())) && position.is_anew(&Piece::Beyond));
        assert!(!position.is_anew(&Piece::Absent));
    }
}
