//! A header block: the positions of its fields, and the encoding of numbers (tar(5), pax(1) of POSIX).

use std::io;

use super::block::{BLOCK, invalid};

/// A header as it is in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header(pub [u8; BLOCK]);

/// A field: its first byte and its length.
type Field = (usize, usize);

pub(super) const NAME: Field = (0, 100);
pub(super) const MODE: Field = (100, 8);
pub(super) const UID: Field = (108, 8);
pub(super) const GID: Field = (116, 8);
pub(super) const SIZE: Field = (124, 12);
pub(super) const MTIME: Field = (136, 12);
pub(super) const CHECKSUM: Field = (148, 8);
pub(super) const TYPE: usize = 156;
pub(super) const LINK: Field = (157, 100);
pub(super) const MAGIC: Field = (257, 8);
pub(super) const MAJOR: Field = (329, 8);
pub(super) const MINOR: Field = (337, 8);
pub(super) const PREFIX: Field = (345, 155);

/// The magic field of ustar and of pax.
pub(super) const USTAR: &[u8] = b"ustar\x0000";
/// The magic field of GNU tar's own format.
pub(super) const GNU: &[u8] = b"ustar  \0";

impl Header {
    /// A field's bytes.
    pub(super) fn field(&self, (at, length): Field) -> &[u8] {
        &self.0[at..at + length]
    }

    /// A field's text: up to its first NUL byte.
    pub(super) fn text(&self, field: Field) -> &[u8] {
        until_nul(self.field(field))
    }

    /// Whether the block is all zeros, as at the end of an archive.
    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; BLOCK]
    }

    /// Whether GNU tar's own format is meant.
    pub(super) fn is_gnu(&self) -> bool {
        self.field(MAGIC) == GNU
    }

    /// Checks that the header was written as one.
    pub(super) fn check(&self) -> io::Result<()> {
        let written = number(self.field(CHECKSUM))?;
        let (from, to) = (CHECKSUM.0, CHECKSUM.0 + CHECKSUM.1);
        let counted = || self.0[..from].iter().chain(&[b' '; 8]).chain(&self.0[to..]);
        let sum: i64 = counted().map(|&byte| i64::from(byte)).sum();
        // Some wrote the sum of signed bytes.
        let signed: i64 = counted().map(|&byte| i64::from(byte.cast_signed())).sum();
        if written == sum || written == signed {
            Ok(())
        } else {
            Err(invalid("a header's checksum is wrong"))
        }
    }

    /// The path in the header itself.
    pub(super) fn path(&self) -> Vec<u8> {
        let (name, prefix) = (self.text(NAME), self.text(PREFIX));
        // GNU tar has other things where ustar has the prefix.
        if prefix.is_empty() || self.field(MAGIC) != USTAR {
            return name.to_vec();
        }
        [prefix, b"/", name].concat()
    }
}

pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// A number: octal digits, or GNU's base 256 where the first bit is set.
pub(super) fn number(field: &[u8]) -> io::Result<i64> {
    let too_large = || invalid("a number in a header is too large");
    if field[0] & 0x80 != 0 {
        let negative = field[0] & 0x40 != 0;
        let first = if negative { i64::from(field[0]) - 256 } else { i64::from(field[0] & 0x3f) };
        return field[1..].iter().try_fold(first, |sum, byte| {
            sum.checked_mul(256).and_then(|sum| sum.checked_add(i64::from(*byte))).ok_or_else(too_large)
        });
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | 0);
    let digits = field.iter().skip_while(|byte| is_blank(byte)).take_while(|byte| !is_blank(byte));
    digits.into_iter().try_fold(0i64, |sum, byte| match byte {
        b'0'..=b'7' => {
            sum.checked_mul(8).and_then(|sum| sum.checked_add(i64::from(byte - b'0'))).ok_or_else(too_large)
        }
        _ => Err(invalid("an invalid number in a header")),
    })
}
