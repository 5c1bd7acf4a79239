//! Reading an archive from its beginning to its end.

use std::io::{self, BufRead};

use super::block::{BLOCK, MAX_HEADER_SIZE, invalid};
use super::entry::{Entry, Kind, Time};
use super::header::{self, Header, number, until_nul};
use super::pax::Records;
use super::sparse;

/// How an archive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveEnd {
    /// With an empty block; anything after it is not an entry.
    Marked,
    /// Where its bytes ended, behind a whole entry.
    Unmarked,
}

/// An archive that is being read.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// Bytes of the present entry's data that were not read, and of what fills their last block.
    remaining: u64,
    padding: u64,
    end: Option<ArchiveEnd>,
}

impl<R: BufRead> Reader<R> {
    /// Begins at an archive's first byte.
    pub fn new(input: R) -> Self {
        Self { input, remaining: 0, padding: 0, end: None }
    }

    /// The final state, after [`next`](Self::next) has returned `None`.
    pub fn end(&self) -> Option<ArchiveEnd> {
        self.end
    }

    /// The input, after the part that was read.
    pub fn into_inner(self) -> R {
        self.input
    }

    /// The next entry; unread data of the previous one is skipped.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the input ends within an entry, `InvalidData` if it is not an entry.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> io::Result<Option<Entry>> {
        if self.end.is_some() {
            return Ok(None);
        }
        self.skip_data()?;
        let mut records = Records::default();
        let (mut long_name, mut long_link) = (None, None);
        let mut taken = 0;
        loop {
            let Some(header) = self.block()? else { return self.finish(ArchiveEnd::Unmarked, taken) };
            if header.is_empty() {
                return self.finish(ArchiveEnd::Marked, taken);
            }
            header.check()?;
            let size =
                u64::try_from(number(header.field(header::SIZE))?).map_err(|_| invalid("a negative size"))?;
            let kind = header.0[header::TYPE];
            if !matches!(kind, b'x' | b'g' | b'L' | b'K') {
                return self.entry(&header, size, records, long_name, long_link).map(Some);
            }
            taken += size.next_multiple_of(BLOCK as u64) + BLOCK as u64;
            if taken > MAX_HEADER_SIZE {
                return Err(invalid("the names and attributes of an entry take more than 1 MiB"));
            }
            self.expect_data(size);
            let mut text = vec![0; usize::try_from(size).unwrap_or_default()];
            self.read_data(&mut text)?;
            self.skip_data()?;
            match kind {
                b'x' => records.read(&text)?,
                b'L' => long_name = Some(until_nul(&text).to_vec()),
                b'K' => long_link = Some(until_nul(&text).to_vec()),
                // Global records for all following entries are ignored, as in docker and umoci.
                _ => {}
            }
        }
    }

    fn finish(&mut self, end: ArchiveEnd, taken: u64) -> io::Result<Option<Entry>> {
        if taken > 0 {
            return Err(truncated("it ends in the middle of a header"));
        }
        self.end = Some(end);
        Ok(None)
    }

    fn entry(
        &mut self,
        header: &Header,
        size: u64,
        mut records: Records,
        long_name: Option<Vec<u8>>,
        long_link: Option<Vec<u8>>,
    ) -> io::Result<Entry> {
        let field = |field| number(header.field(field));
        let id = |field| {
            let id = number(header.field(field))?;
            u32::try_from(id).map_err(|_| invalid("an owner that is not a valid id"))
        };
        let device = |field| {
            u32::try_from(number(header.field(field))?).map_err(|_| invalid("an invalid device number"))
        };
        let message = records.sparse.name.take();
        let path = long_name.or(message).or(records.path.take()).unwrap_or_else(|| header.path());
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("`{}`: {error}", String::from_utf8_lossy(&path)))
        };
        let kind = match header.0[header::TYPE] {
            // An old archive writes a directory as a file whose name ends in a slash.
            0 | b'0' if path.ends_with(b"/") => Kind::Directory,
            0 | b'0' | b'7' | b'S' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::Symlink,
            b'3' => Kind::Character,
            b'4' => Kind::Block,
            b'5' => Kind::Directory,
            b'6' => Kind::Fifo,
            other => {
                let shown = char::from(other).escape_default();
                return Err(named(invalid(format!("an entry of type `{shown}`"))));
            }
        };
        let mut entry = Entry::new(kind, path.clone());
        entry.link = long_link.or(records.link.take()).unwrap_or_else(|| header.text(header::LINK).to_vec());
        entry.mode = u32::try_from(field(header::MODE)? & 0o7777).unwrap_or_default();
        entry.uid = id(header::UID).map_err(named)?;
        entry.gid = id(header::GID).map_err(named)?;
        entry.mtime = Time { seconds: field(header::MTIME)?, nanoseconds: 0 };
        if matches!(kind, Kind::Character | Kind::Block) {
            entry.device = (device(header::MAJOR)?, device(header::MINOR)?);
        }
        records.apply(&mut entry);
        if [entry.uid, entry.gid].contains(&u32::MAX) {
            return Err(named(invalid("an owner that is not a valid id")));
        }
        // Only files have data, even if a header has a size; a directory that old archives write as a file has that
        // size.
        let has_data = matches!(header.0[header::TYPE], 0 | b'0' | b'7' | b'S');
        let stored = if has_data { records.size.unwrap_or(size) } else { 0 };
        entry.size = if kind == Kind::File { stored } else { 0 };
        let map = if header.0[header::TYPE] == b'S' && header.is_gnu() {
            let (size, map) = sparse::read_old_gnu_map(header, self).map_err(named)?;
            self.expect_data(stored);
            Some((size, map))
        } else {
            self.expect_data(stored);
            match records.sparse.size {
                Some(size) if kind == Kind::File => {
                    Some((size, sparse::read_pax_map(records.sparse, self).map_err(named)?))
                }
                _ => None,
            }
        };
        if let Some((size, map)) = map {
            sparse::check(&map, size, self.remaining).map_err(named)?;
            entry.size = size;
            entry.sparse = Some(map);
        }
        Ok(entry)
    }

    /// The next piece of the present entry's data; empty at its end.
    pub fn data(&mut self) -> io::Result<&[u8]> {
        if self.remaining == 0 {
            return Ok(&[]);
        }
        let there = fill_buffer(&mut self.input)?;
        if there.is_empty() {
            return Err(truncated("it ends in the middle of a file"));
        }
        let count = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(there.len());
        Ok(&there[..count])
    }

    /// Takes bytes of what [`data`](Self::data) has returned as read.
    pub fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.remaining -= count as u64;
    }

    fn expect_data(&mut self, size: u64) {
        self.remaining = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    /// Fills a buffer with data of the present entry.
    pub(super) fn read_data(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let data = self.data()?;
            if data.is_empty() {
                return Err(invalid("an entry that is shorter than its header says"));
            }
            let count = data.len().min(buffer.len());
            buffer[..count].copy_from_slice(&data[..count]);
            self.consume(count);
            buffer = &mut buffer[count..];
        }
        Ok(())
    }

    fn skip_data(&mut self) -> io::Result<()> {
        loop {
            match self.data()?.len() {
                0 => break,
                count => self.consume(count),
            }
        }
        // The last block of the last file need not be filled: umoci ends layers so, and Go's archive/tar reads them.
        self.remaining = std::mem::take(&mut self.padding);
        while self.remaining > 0 && !fill_buffer(&mut self.input)?.is_empty() {
            let count = self.data()?.len();
            self.consume(count);
        }
        self.remaining = 0;
        Ok(())
    }

    /// The next block; nothing where the input ends before it.
    pub(super) fn block(&mut self) -> io::Result<Option<Header>> {
        let mut block = [0; BLOCK];
        let mut count = 0;
        while count < BLOCK {
            let there = fill_buffer(&mut self.input)?;
            if there.is_empty() {
                return if count == 0 {
                    Ok(None)
                } else {
                    Err(truncated("it ends in the middle of a header"))
                };
            }
            let more = there.len().min(BLOCK - count);
            block[count..count + more].copy_from_slice(&there[..more]);
            self.input.consume(more);
            count += more;
        }
        Ok(Some(Header(block)))
    }
}

/// The next bytes of an input; empty at its end.
fn fill_buffer(input: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // Bytes that were read before are returned first.
    input.fill_buf()
}

fn truncated(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}
