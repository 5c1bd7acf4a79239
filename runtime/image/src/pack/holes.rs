//! Files with large holes, such as `lastlog` of users with large ids, and maps of databases.
//!
//! They are sparse files in the layer, which Docker, containerd and podman unpack (they use Go's archive/tar), with zeros
//! where the holes were. Docker without its containerd image store and podman keep layers unpacked, however, and make the
//! archive anew for a push, by tar-split, which writes a sparse file whole: the layer then has another digest. So smaller
//! holes are written as zeros, which every tool can handle, and cost little once compressed.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};

use jobc_container::tar::MAX_PIECES;
use jobc_sys::sparse::{has_holes, next_data_range};
use rustix::fs::Stat;

/// The smallest sum of holes for which a file is sparse in the layer: more zeros take a minute or more.
const MIN_HOLES: u64 = 1 << 30;

/// Pieces of data are multiples of this, except at the end of a file.
const PIECE_SIZE: u64 = 4096;

/// The offsets and lengths of the data of a file with large holes; `None` for other files.
pub(super) fn pieces(file: &File, status: &Stat) -> io::Result<Option<Vec<(u64, u64)>>> {
    let size = u64::try_from(status.st_size).unwrap_or_default();
    if size < MIN_HOLES || !has_holes(status) {
        return Ok(None);
    }
    let mut pieces = Vec::new();
    let (mut at, mut holes) = (0, 0);
    while at < size {
        let (begin, end) = next_data_range(file, at, size)?;
        if begin == end {
            holes += size - at;
            break;
        }
        // Some file systems have smaller blocks than the format.
        let begin = begin / PIECE_SIZE * PIECE_SIZE;
        let end = end.next_multiple_of(PIECE_SIZE).min(size);
        holes += begin - at;
        pieces.push((begin, end - begin));
        at = end;
    }
    (&*file).rewind()?;
    Ok((holes >= MIN_HOLES).then(|| merged(pieces, MAX_PIECES - 1)))
}

/// At most so many pieces: the smallest holes between them become data.
fn merged(mut pieces: Vec<(u64, u64)>, max: usize) -> Vec<(u64, u64)> {
    let mut gap = PIECE_SIZE;
    while pieces.len() > max {
        let mut fewer: Vec<(u64, u64)> = Vec::new();
        for (offset, length) in pieces {
            match fewer.last_mut() {
                Some((begin, before)) if offset - (*begin + *before) <= gap => {
                    *before = offset + length - *begin;
                }
                _ => fewer.push((offset, length)),
            }
        }
        pieces = fewer;
        gap *= 2;
    }
    pieces
}

/// Reads pieces of a file, one after the other.
pub(super) struct PieceReader<'a> {
    file: &'a File,
    pieces: std::slice::Iter<'a, (u64, u64)>,
    /// The bytes of the present piece that were not read.
    rest: u64,
}

impl<'a> PieceReader<'a> {
    pub(super) fn new(file: &'a File, pieces: &'a [(u64, u64)]) -> Self {
        Self { file, pieces: pieces.iter(), rest: 0 }
    }
}

impl Read for PieceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest == 0 {
            let Some((offset, length)) = self.pieces.next() else { return Ok(0) };
            self.file.seek(SeekFrom::Start(*offset))?;
            self.rest = *length;
        }
        let most = usize::try_from(self.rest).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read(&mut buffer[..most])?;
        self.rest -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_holes_become_data() {
        let pieces = vec![(0, 4096), (8192, 4096), (1 << 20, 4096), (2 << 20, 1)];
        assert_eq!(merged(pieces.clone(), 4), pieces);
        assert_eq!(merged(pieces.clone(), 3), [(0, 12288), (1 << 20, 4096), (2 << 20, 1)]);
        assert_eq!(merged(pieces, 1), [(0, (2 << 20) + 1)]);
    }
}
