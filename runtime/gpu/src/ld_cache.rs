//! The loader's cache, /etc/ld.so.cache: read, added to, written.
//!
//! The format is glibc's (`sysdeps/generic/dl-cache.h`): a header, entries sorted for a binary search, the strings that
//! they reference by offset, and extensions, one of which lists the names of `glibc-hwcaps` directories that entries
//! reference. A cache from an image is untrusted: every offset is checked to lie within it.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The magic of the current format.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// The magic of the old format; the current one may follow it.
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const HEADER_SIZE: usize = 48;
const ENTRY_SIZE: usize = 24;
const OLD_HEADER_SIZE: usize = 16;
const OLD_ENTRY_SIZE: usize = 12;
/// The magic of the extensions.
const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
const TAG_HWCAPS: u32 = 1;
/// The numbers are little-endian.
const LITTLE_ENDIAN: u8 = 2;
/// The bits of an entry's flags that identify the architecture.
const ARCHITECTURE_MASK: u32 = 0xff00;

/// The flags of libraries for this host's own programs (`sysdeps/…/ldconfig.h`).
pub const NATIVE_FLAGS: u32 = if cfg!(target_arch = "x86_64") {
    0x0303
} else if cfg!(target_arch = "aarch64") {
    0x0a03
} else {
    0x0003
};
/// The flags of libraries for 32-bit x86.
pub const I386_FLAGS: u32 = 0x0003;

/// A cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    entries: Vec<Entry>,
    /// The directories below `glibc-hwcaps` that entries refer to.
    hwcaps: Vec<Vec<u8>>,
}

/// A library.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    flags: u32,
    /// The kernel that it needs, until glibc 2.32.
    os_version: u32,
    hwcap: u64,
    /// The name that programs ask for.
    name: Vec<u8>,
    path: Vec<u8>,
}

impl Cache {
    /// Reads a cache.
    ///
    /// # Errors
    ///
    /// No cache, or a broken one; one whose names would take far more than the file.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut budget = Budget::of(bytes);
        let cache = Self::read_within(bytes, &mut budget);
        cache.ok_or(if budget.is_exhausted { Unreadable::TooLarge } else { Unreadable::NoCache })
    }

    fn read_within(bytes: &[u8], budget: &mut Budget) -> Option<Self> {
        let bytes = new_format(bytes)?;
        let count = number(bytes, 20)? as usize;
        if !matches!(bytes.get(28)? & 3, 0 | LITTLE_ENDIAN) || count > bytes.len() / ENTRY_SIZE {
            return None;
        }
        let mut text = |at| budget.text(bytes, at);
        let entry = |index: usize| {
            let at = HEADER_SIZE + index * ENTRY_SIZE;
            Some(Entry {
                flags: number(bytes, at)?,
                name: text(number(bytes, at + 4)?)?,
                path: text(number(bytes, at + 8)?)?,
                os_version: number(bytes, at + 12)?,
                hwcap: u64::from(number(bytes, at + 16)?) | u64::from(number(bytes, at + 20)?) << 32,
            })
        };
        let entries = (0..count).map(entry).collect::<Option<Vec<_>>>()?;
        Some(Self { entries, hwcaps: hwcaps(bytes, budget) })
    }

    /// The paths of a library by soname, in the loader's order.
    pub fn find(&self, name: &str, flags: u32) -> impl Iterator<Item = &Path> {
        let is_it = move |entry: &&Entry| entry.flags == flags && entry.name == name.as_bytes();
        self.entries.iter().filter(is_it).map(|entry| Path::new(OsStr::from_bytes(&entry.path)))
    }

    /// The directories that its libraries lie in, each once, in the order of the file.
    pub fn directories(&self) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> = Vec::new();
        for entry in &self.entries {
            let directory = Path::new(OsStr::from_bytes(&entry.path)).parent().unwrap_or(Path::new("/"));
            if !directories.iter().any(|there| there == directory) {
                directories.push(directory.to_owned());
            }
        }
        directories
    }

    /// Adds a library under the name of its file, instead of those of that name.
    pub fn add(&mut self, path: &Path, flags: u32) {
        let Some(name) = path.file_name() else { return };
        let name = name.as_bytes().to_vec();
        self.entries.retain(|entry| {
            entry.name != name || entry.flags & ARCHITECTURE_MASK != flags & ARCHITECTURE_MASK
        });
        let path = path.as_os_str().as_bytes().to_vec();
        self.entries.push(Entry { flags, os_version: 0, hwcap: 0, name, path });
    }

    /// The bytes of the file.
    pub fn write(&self) -> Vec<u8> {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        // The loader searches for the first of equal names, and takes it.
        entries.sort_by(|a, b| compare(&b.name, &a.name).then(b.flags.cmp(&a.flags)));
        let strings_at = HEADER_SIZE + entries.len() * ENTRY_SIZE;
        let mut strings: Vec<u8> = Vec::new();
        let mut place = |text: &[u8]| {
            let at = to_u32(strings_at + strings.len());
            strings.extend_from_slice(text);
            strings.push(0);
            at
        };
        let mut table = Vec::with_capacity(entries.len() * ENTRY_SIZE);
        for entry in &entries {
            let (name, path) = (place(&entry.name), place(&entry.path));
            for number in [entry.flags, name, path, entry.os_version] {
                table.extend_from_slice(&number.to_le_bytes());
            }
            table.extend_from_slice(&entry.hwcap.to_le_bytes());
        }
        let hwcaps: Vec<u32> = self.hwcaps.iter().map(|name| place(name)).collect();
        let extension_at = (strings_at + strings.len()).next_multiple_of(4);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&to_u32(entries.len()).to_le_bytes());
        bytes.extend_from_slice(&to_u32(strings.len()).to_le_bytes());
        bytes.extend_from_slice(&[LITTLE_ENDIAN, 0, 0, 0]);
        let extension = if hwcaps.is_empty() { 0 } else { to_u32(extension_at) };
        bytes.extend_from_slice(&extension.to_le_bytes());
        bytes.resize(HEADER_SIZE, 0);
        bytes.extend_from_slice(&table);
        bytes.extend_from_slice(&strings);
        if !hwcaps.is_empty() {
            bytes.resize(extension_at, 0);
            let size = to_u32(hwcaps.len() * 4);
            let section = [TAG_HWCAPS, 0, to_u32(extension_at + 24), size];
            for number in [EXTENSION_MAGIC, 1].into_iter().chain(section).chain(hwcaps) {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        bytes
    }
}

/// No cache is 4 GiB large.
fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The part of a file in the current format.
fn new_format(bytes: &[u8]) -> Option<&[u8]> {
    if bytes.starts_with(MAGIC) {
        return Some(bytes);
    }
    let count = number(bytes.strip_prefix(OLD_MAGIC).map(|_| bytes)?, 12)? as usize;
    let behind = OLD_HEADER_SIZE.checked_add(count.checked_mul(OLD_ENTRY_SIZE)?)?.next_multiple_of(8);
    bytes.get(behind..).filter(|rest| rest.starts_with(MAGIC))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Why a cache is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is not a cache, or is corrupt.
    NoCache,
    /// Its entries share strings so often that a copy would be far larger than the file.
    TooLarge,
}

/// How many bytes of names may be copied from a cache. ldconfig writes a name as the end of its path, so that entries
/// share strings: twice the size of the file is usual; without a limit, it could be the square of its size.
struct Budget {
    left: usize,
    is_exhausted: bool,
}

impl Budget {
    const FACTOR: usize = 4;

    fn of(bytes: &[u8]) -> Self {
        Self { left: bytes.len().saturating_mul(Self::FACTOR), is_exhausted: false }
    }

    /// The text at an offset, up to its NUL.
    fn text(&mut self, bytes: &[u8], at: u32) -> Option<Vec<u8>> {
        let rest = bytes.get(at as usize..)?;
        let rest = &rest[..rest.len().min(self.left)];
        let Some(end) = rest.iter().position(|&byte| byte == 0) else {
            self.is_exhausted |= rest.len() == self.left;
            return None;
        };
        self.left -= end;
        Some(rest[..end].to_vec())
    }
}

/// The names of the `glibc-hwcaps` directories; none if the extensions cannot be read, as the loader has it.
fn hwcaps(bytes: &[u8], budget: &mut Budget) -> Vec<Vec<u8>> {
    let mut read = || {
        let at = number(bytes, 32)? as usize;
        if at == 0 || number(bytes, at)? != EXTENSION_MAGIC {
            return None;
        }
        let sections = number(bytes, at + 4)?.min(64) as usize;
        let section = (0..sections).map(|index| at + 8 + index * 16);
        let section = section.into_iter().find(|at| number(bytes, *at) == Some(TAG_HWCAPS))?;
        let (from, size) = (number(bytes, section + 8)? as usize, number(bytes, section + 12)? as usize);
        (0..size.min(bytes.len()) / 4)
            .map(|index| budget.text(bytes, number(bytes, from + index * 4)?))
            .collect()
    };
    read().unwrap_or_default()
}

/// The order of names (`_dl_cache_libcmp`): runs of digits by their number, and before everything else greater.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let (mut one, mut other) = (one.iter().copied().peekable(), other.iter().copied().peekable());
    loop {
        match (one.peek().copied(), other.peek().copied()) {
            (Some(a), Some(b)) if a.is_ascii_digit() && b.is_ascii_digit() => {
                let order = parse_digits(&mut one).cmp(&parse_digits(&mut other));
                if order.is_ne() {
                    return order;
                }
            }
            (Some(a), _) if a.is_ascii_digit() => return Ordering::Greater,
            (Some(_), Some(b)) if b.is_ascii_digit() => return Ordering::Less,
            (None, None) => return Ordering::Equal,
            (a, b) if a != b => {
                // As signed characters; nothing is less than all.
                let signed = |byte: Option<u8>| byte.unwrap_or(0).cast_signed();
                return signed(a).cmp(&signed(b));
            }
            _ => {
                one.next();
                other.next();
            }
        }
    }
}

/// The number that a run of digits is; one too large wraps, as with the loader's int.
fn parse_digits(bytes: &mut std::iter::Peekable<impl Iterator<Item = u8>>) -> i32 {
    let mut number: i32 = 0;
    while let Some(digit) = bytes.next_if(u8::is_ascii_digit) {
        number = number.wrapping_mul(10).wrapping_add(i32::from(digit - b'0'));
    }
    number
}

#[cfg(test)]
mod tests;
