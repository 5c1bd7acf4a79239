//! Sparse files: the map of their data.

use std::io::{self, BufRead};

use super::block::{BLOCK, invalid};
use super::header::{Header, number};
use super::pax;
use super::read::Reader;

/// Maximum number of data pieces of one file, which keeps the map of a hostile one small.
pub const MAX_PIECES: usize = 1 << 16;

/// The map of GNU tar's oldest format: four pieces in the header, more in blocks that follow.
///
/// Returns the file's size and the pieces.
pub(super) fn read_old_gnu_map<R: BufRead>(
    header: &Header,
    reader: &mut Reader<R>,
) -> io::Result<(u64, Vec<(u64, u64)>)> {
    let mut map = Vec::new();
    let mut more = pieces(&header.0[386..482], &mut map)? && header.0[482] != 0;
    while more {
        let block = reader.block()?.ok_or_else(|| invalid("it ends in the middle of a header"))?;
        more = pieces(&block.0[..504], &mut map)? && block.0[504] != 0;
    }
    Ok((size(&header.0[483..495])?, map))
}

/// Adds pieces of 12 bytes a number, and returns whether all of them were used.
fn pieces(bytes: &[u8], map: &mut Vec<(u64, u64)>) -> io::Result<bool> {
    for piece in bytes.chunks_exact(24) {
        if piece[0] == 0 || piece[12] == 0 {
            return Ok(false);
        }
        map.push((size(&piece[..12])?, size(&piece[12..])?));
        if map.len() > MAX_PIECES {
            return Err(too_many());
        }
    }
    Ok(true)
}

fn size(field: &[u8]) -> io::Result<u64> {
    u64::try_from(number(field)?).map_err(|_| invalid("a negative size"))
}

/// The map from the pax records; for 1.0, from the start of the data.
pub(super) fn read_pax_map<R: BufRead>(
    message: pax::Sparse,
    reader: &mut Reader<R>,
) -> io::Result<Vec<(u64, u64)>> {
    let numbers = match (message.major, message.minor) {
        (Some(1), Some(0)) => read_map_before_data(reader)?,
        (None | Some(0), _) => message.map,
        _ => return Err(invalid("a sparse file of an unknown version")),
    };
    if numbers.len() / 2 > MAX_PIECES {
        return Err(too_many());
    }
    let (pairs, rest) = numbers.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(invalid("a sparse file with a damaged map"));
    }
    Ok(pairs.iter().map(|[offset, length]| (*offset, *length)).collect())
}

/// Decimal numbers, a line each: how many pieces, then their offsets and lengths; filled up to a whole block.
fn read_map_before_data<R: BufRead>(reader: &mut Reader<R>) -> io::Result<Vec<u64>> {
    let broken = || invalid("a sparse file with a damaged map");
    let (mut numbers, mut line, mut wanted) = (Vec::new(), Vec::new(), None);
    while wanted != Some(numbers.len()) {
        let mut block = [0; BLOCK];
        reader.read_data(&mut block)?;
        for byte in block {
            if wanted == Some(numbers.len()) {
                break;
            }
            if byte != b'\n' {
                line.push(byte);
                if line.len() > 20 {
                    return Err(broken());
                }
                continue;
            }
            let number = pax::decimal(&line)?;
            line.clear();
            if wanted.is_some() {
                numbers.push(number);
            } else {
                let pieces = usize::try_from(number).ok().filter(|pieces| *pieces <= MAX_PIECES);
                wanted = Some(2 * pieces.ok_or_else(too_many)?);
            }
        }
    }
    Ok(numbers)
}

/// Checks a map: pieces are ascending, disjoint and within the file, and their total length is that of the data.
pub(super) fn check(map: &[(u64, u64)], size: u64, data: u64) -> io::Result<()> {
    let (mut end, mut sum) = (0u64, 0u64);
    for (offset, length) in map {
        let next = offset.checked_add(*length).filter(|next| *offset >= end && *next <= size);
        end = next.ok_or_else(|| invalid("a sparse file with a damaged map"))?;
        sum += length;
    }
    if sum == data { Ok(()) } else { Err(invalid("a sparse file whose map does not match its data")) }
}

fn too_many() -> io::Error {
    invalid(format!("a sparse file in more than {MAX_PIECES} pieces"))
}
