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
        self.headers(entry, size, &records(entry, size))?;
        self.data(data, size)?;
        self.pad_block(size)
    }

    /// Writes a sparse file in version 1.0 of GNU's pax format, which Go's archive/tar, GNU tar, bsdtar and Python read.
    /// `pieces` are the offsets and lengths of its data, ascending and disjoint, and `data` is the data of all of them.
    /// GNU tar reads only those that are whole blocks of 512 bytes, except at the end of the file.
    ///
    /// Not every tool that reads such a file can write the same archive again; fewer than
    /// [`MAX_PIECES`](super::MAX_PIECES) of them are read again.
    pub fn sparse_file(
        &mut self,
        entry: &Entry,
        pieces: &[(u64, u64)],
        data: &mut dyn Read,
    ) -> io::Result<()> {
        // GNU tar skips a file that ends with a hole unless an empty piece is at its end.
        let end = pieces.last().map_or(0, |(offset, length)| offset + length);
        let last = (end < entry.size).then_some((entry.size, 0));
        let mut map = format!("{}\n", pieces.len() + usize::from(last.is_some()));
        for (offset, length) in pieces.iter().copied().chain(last) {
            map += &format!("{offset}\n{length}\n");
        }
        let map_size = (map.len() as u64).next_multiple_of(BLOCK as u64);
        let data_size = pieces.iter().map(|(_, length)| length).sum::<u64>();
        let name = last_name(&entry.path);
        let directory = &entry.path[..entry.path.len() - name.len()];
        let mut path = [directory, b"GNUSparseFile.0/", name].concat();
        // The record below has the name.
        path.truncate(NAME.1);
        let stored = Entry { path, ..entry.clone() };
        let size = map_size + data_size;
        let mut records = records(&stored, size);
        for (key, value) in [
            ("GNU.sparse.major", &b"1"[..]),
            ("GNU.sparse.minor", b"0"),
            ("GNU.sparse.name", &entry.path),
            ("GNU.sparse.realsize", entry.size.to_string().as_bytes()),
        ] {
            put_record(&mut records, key.as_bytes(), value);
        }
        self.headers(&stored, size, &records)?;
        self.0.write_all(map.as_bytes())?;
        self.pad_block(map.len() as u64)?;
        self.data(data, data_size)?;
        self.pad_block(data_size)
    }

    /// Writes the header of an entry, after one with the records if there are any.
    fn headers(&mut self, entry: &Entry, size: u64, records: &[u8]) -> io::Result<()> {
        if !records.is_empty() {
            let name = [b"PaxHeaders.0/", last_name(&entry.path)].concat();
            let mut header =
                header(&Entry { mode: 0o644, ..Entry::new(Kind::File, name) }, records.len() as u64);
            header[TYPE] = b'x';
            self.header(header)?;
            self.0.write_all(records)?;
            self.pad_block(records.len() as u64)?;
        }
        self.header(header(entry, size))
    }

    fn data(&mut self, data: &mut dyn Read, size: u64) -> io::Result<()> {
        if io::copy(&mut data.take(size), &mut self.0)? == size {
            return Ok(());
        }
        Err(invalid("a file that was truncated while it was read"))
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
    let mut put = |key: &[u8], value: &[u8]| put_record(&mut records, key, value);
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

fn put_record(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
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
