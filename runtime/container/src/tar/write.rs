//! Writing an archive: ustar, with an extended header of pax before an entry that does not fit.

use std::io::{self, Read, Write};

use super::block::{BLOCK, invalid};
use super::entry::{Entry, Kind, Time};
use super::header::{CHECKSUM, GID, LINK, MAGIC, MAJOR, MINOR, MODE, MTIME, NAME, SIZE, TYPE, UID, USTAR};

/// An archive that is being written. The same entries give the same bytes.
#[derive(Debug)]
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// Begins an archive.
    pub fn new(output: W) -> Self {
        Self(output)
    }

    /// Writes an entry without data.
    pub fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.file(entry, &mut io::empty())
    }

    /// Writes an entry with its data, of which there must be `entry.size` bytes; a sparse file is written whole.
    pub fn file(&mut self, entry: &Entry, data: &mut dyn Read) -> io::Result<()> {
        let size = if entry.kind == Kind::File { entry.size } else { 0 };
        let records = records(entry, size);
        if !records.is_empty() {
            let name = [b"PaxHeaders.0/", last_name(&entry.path)].concat();
            let mut header =
                header(&Entry { mode: 0o644, ..Entry::new(Kind::File, name) }, records.len() as u64);
            header[TYPE] = b'x';
            self.header(header)?;
            self.0.write_all(&records)?;
            self.pad_block(records.len() as u64)?;
        }
        self.header(header(entry, size))?;
        let mut data = data.take(size);
        if io::copy(&mut data, &mut self.0)? != size {
            return Err(invalid("a file that was truncated while it was read"));
        }
        self.pad_block(size)
    }

    /// Writes the end, and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.write_all(&[0; 2 * BLOCK])?;
        self.0.flush()?;
        Ok(self.0)
    }

    fn header(&mut self, mut header: [u8; BLOCK]) -> io::Result<()> {
        let (from, to) = (CHECKSUM.0, CHECKSUM.0 + CHECKSUM.1);
        header[from..to].fill(b' ');
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[from..to].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.write_all(&header)
    }

    /// Fills the last block of some data.
    fn pad_block(&mut self, size: u64) -> io::Result<()> {
        let rest = usize::try_from(size.next_multiple_of(BLOCK as u64) - size).unwrap_or_default();
        self.0.write_all(&[0; BLOCK][..rest])
    }
}

/// The largest number that an octal field takes, the NUL byte at its end left out.
fn max_octal((_, length): (usize, usize)) -> u64 {
    (1 << (3 * (length - 1))) - 1
}

fn header(entry: &Entry, size: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |(at, length): (usize, usize), bytes: &[u8]| {
        let count = bytes.len().min(length);
        header[at..at + count].copy_from_slice(&bytes[..count]);
    };
    put(NAME, &entry.path);
    put(LINK, &entry.link);
    put(MAGIC, USTAR);
    let seconds = u64::try_from(entry.mtime.seconds).unwrap_or(0);
    let (major, minor) = entry.device;
    for (field, number) in [
        (MODE, u64::from(entry.mode)),
        (UID, entry.uid.into()),
        (GID, entry.gid.into()),
        (SIZE, size),
        (MTIME, seconds),
        (MAJOR, major.into()),
        (MINOR, minor.into()),
    ] {
        // A value that does not fit is in a pax record, or is not possible on Linux.
        let number = if number > max_octal(field) { 0 } else { number };
        put(field, format!("{number:0width$o}\0", width = field.1 - 1).as_bytes());
    }
    header[TYPE] = match entry.kind {
        Kind::File => b'0',
        Kind::HardLink => b'1',
        Kind::Symlink => b'2',
        Kind::Character => b'3',
        Kind::Block => b'4',
        Kind::Directory => b'5',
        Kind::Fifo => b'6',
    };
    header
}

/// The records for what does not fit into the header.
fn records(entry: &Entry, size: u64) -> Vec<u8> {
    let mut records = Vec::new();
    let mut put = |key: &[u8], value: &[u8]| {
        // Its length counts its own digits.
        let rest = key.len() + value.len() + 3;
        let mut length = rest + 1;
        while rest + length.to_string().len() != length {
            length = rest + length.to_string().len();
        }
        records.extend_from_slice(length.to_string().as_bytes());
        records.push(b' ');
        records.extend_from_slice(key);
        records.push(b'=');
        records.extend_from_slice(value);
        records.push(b'\n');
    };
    if entry.path.len() > NAME.1 {
        put(b"path", &entry.path);
    }
    if entry.link.len() > LINK.1 {
        put(b"linkpath", &entry.link);
    }
    for (key, number, field) in
        [("uid", u64::from(entry.uid), UID), ("gid", entry.gid.into(), GID), ("size", size, SIZE)]
    {
        if number > max_octal(field) {
            put(key.as_bytes(), number.to_string().as_bytes());
        }
    }
    let Time { seconds, nanoseconds } = entry.mtime;
    if nanoseconds != 0 || u64::try_from(seconds).map_or(true, |seconds| seconds > max_octal(MTIME)) {
        put(b"mtime", format_time(entry.mtime).as_bytes());
    }
    for (name, value) in &entry.attributes {
        put(&[b"SCHILY.xattr.", &name[..]].concat(), value);
    }
    records
}

/// A time as a decimal number.
fn format_time(time: Time) -> String {
    let Time { seconds, nanoseconds } = time;
    let (sign, whole, part) = match (seconds < 0, nanoseconds) {
        (true, 1..) => ("-", (seconds + 1).unsigned_abs(), 1_000_000_000 - nanoseconds),
        (true, 0) => ("-", seconds.unsigned_abs(), 0),
        (false, part) => ("", seconds.unsigned_abs(), part),
    };
    if part == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{part:09}").trim_end_matches('0').to_owned()
}

fn last_name(path: &[u8]) -> &[u8] {
    path.split(|&byte| byte == b'/').rfind(|name| !name.is_empty()).unwrap_or_default()
}
