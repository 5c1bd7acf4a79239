//! A root file system from an archive: rootfs.tar, .tar.gz or .tgz, which nobody has looked through.
//!
//! Every entry is placed below a descriptor of the new root by openat2(2) `RESOLVE_IN_ROOT`, so that no name and no link of
//! the archive leads out of it; see `tree.rs`. What is unpacked gets its name at the very end: a root that is there is whole.

mod tree;

use std::cell::Cell;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::remove::remove;
use crate::bundle::because;
use crate::error::{Error, Kind, Result};
use tree::{Attributes, Tree};

/// The most that the names and attributes before one entry may take.
const LARGEST_HEADER: u64 = 1 << 20;

/// The largest file, so that a few bytes which claim to be a sparse file without end cost no hours.
const LARGEST_FILE: u64 = 2 << 40;

/// Unpacks an archive to a folder that is not there yet.
///
/// Started by root, everything gets the owner, group, device number, permission bits and file capabilities of the archive;
/// by anybody else, it all belongs to them, and set-user-id bits and devices below /dev, which every container gets anew, are
/// left out. On an error nothing is left. What a killed run left behind is removed.
pub fn unpack(archive: &Path, root: &Path) -> Result<()> {
    unpack_unless(&AtomicBool::new(false), archive, root)
}

/// The same, which ends with an error soon after `stopped` has become true.
pub fn unpack_unless(stopped: &AtomicBool, archive: &Path, root: &Path) -> Result<()> {
    unpack_as(archive, root, rustix::process::geteuid().is_root(), stopped)
}

/// The same for an archive that is data: as if a normal user had started it, so nothing belongs to anybody else.
pub fn unpack_data_unless(stopped: &AtomicBool, archive: &Path, folder: &Path) -> Result<()> {
    unpack_as(archive, folder, false, stopped)
}

fn unpack_as(archive: &Path, root: &Path, as_root: bool, stopped: &AtomicBool) -> Result<()> {
    let begun = root.with_extension("part");
    remove(&begun)?;
    let result = make(archive, &begun, as_root, stopped).and_then(|()| {
        fs::rename(&begun, root).map_err(|error| {
            Error::new(Kind::Machine, format!("cannot name `{}`: {}", root.display(), because(&error)))
        })
    });
    if result.is_err() {
        // The first error is the one to tell.
        let _ = remove(&begun);
    }
    result
}

fn make(archive: &Path, root: &Path, as_root: bool, stopped: &AtomicBool) -> Result<()> {
    let shown = archive.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::new(Kind::Machine, format!("no space left to unpack `{shown}` to `{}`", root.display()))
                .help("unpack it to a folder on a larger disk, and give that as the root")
        }
        io::ErrorKind::UnexpectedEof => Error::new(Kind::Machine, format!("`{shown}` is truncated: {error}")),
        _ => Error::new(Kind::Machine, format!("cannot unpack `{shown}`: {}", because(&error))),
    };
    fs::create_dir(root).map_err(failed)?;
    let tree = Tree::new(root, as_root).map_err(failed)?;
    let mut file = File::open(archive).map_err(failed)?;
    let mut magic = Vec::new();
    (&mut file).take(512).read_to_end(&mut magic).map_err(failed)?;
    file.rewind().map_err(failed)?;
    match magic[..] {
        [0x1f, 0x8b, ..] => read(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, file)), tree, stopped),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => return Err(compressed(archive, "zstd", "unzstd")),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => return Err(compressed(archive, "xz", "unxz")),
        [b'B', b'Z', b'h', ..] => return Err(compressed(archive, "bzip2", "bunzip2")),
        [b'P', b'K', 3, 4, ..] => {
            let message =
                format!("`{shown}` is a zip archive; tar is read here, as it is or compressed by gzip");
            return Err(Error::new(Kind::Unsupported, message).help("make a tar archive of what is in it"));
        }
        _ => read(BufReader::with_capacity(1 << 16, file), tree, stopped),
    }
    .map_err(failed)
}

fn compressed(archive: &Path, by: &str, program: &str) -> Error {
    Error::new(
        Kind::Unsupported,
        format!("`{}` is compressed by {by}; gzip or nothing is read here", archive.display()),
    )
    .help(format!("run `{program} {}`, or compress it by gzip", archive.display()))
}

/// What is known of an archive's bytes: how many may still be read, and how many zeros the last ones were.
struct Watch<'a> {
    allowed: Cell<u64>,
    zeros: Cell<u64>,
    /// Set to true where nobody wants it any more.
    stopped: &'a AtomicBool,
}

/// The bytes of the archive, watched.
struct Watched<'a, R>(R, &'a Watch<'a>);

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Self(inner, Watch { allowed, zeros, stopped }) = self;
        if stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("it was given up"));
        }
        if allowed.get() == 0 {
            return Err(invalid("the names and attributes of an entry take more than 1 MiB"));
        }
        let most = usize::try_from(allowed.get()).unwrap_or(usize::MAX).min(buffer.len());
        let count = inner.read(&mut buffer[..most])?;
        allowed.set(allowed.get() - count as u64);
        let trailing = buffer[..count].iter().rev().take_while(|byte| **byte == 0).count();
        zeros.set(if trailing == count { zeros.get() + count as u64 } else { trailing as u64 });
        Ok(count)
    }
}

fn read(source: impl Read, mut tree: Tree, stopped: &AtomicBool) -> io::Result<()> {
    let watch = Watch { allowed: Cell::new(LARGEST_HEADER), zeros: Cell::new(0), stopped };
    let mut archive = Archive::new(Watched(source, &watch));
    for entry in archive.entries()? {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        watch.allowed.set(u64::MAX);
        let path = entry.path_bytes().into_owned();
        place(&mut entry, &path, &mut tree).map_err(|error| {
            let name = String::from_utf8_lossy(&path);
            io::Error::new(error.kind(), format!("`{name}`: {}", because(&error)))
        })?;
        io::copy(&mut entry, &mut io::sink())?;
        // Its data was read to its end: before the next entry there are only headers.
        watch.allowed.set(LARGEST_HEADER);
    }
    if watch.zeros.get() < 512 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has no end mark"));
    }
    // The rest, so that a checksum of the compression behind the end mark is looked at too.
    watch.allowed.set(u64::MAX);
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    tree.finish()
}

/// Puts one entry into the tree.
fn place<R: Read>(entry: &mut Entry<'_, R>, path: &[u8], tree: &mut Tree) -> io::Result<()> {
    let kind = entry.header().entry_type();
    if kind == EntryType::XGlobalHeader {
        return Ok(());
    }
    let attributes = attributes(entry)?;
    let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned);
    let target = || target.ok_or_else(|| invalid("a link to nothing"));
    let number = |part: io::Result<Option<u32>>| part?.ok_or_else(|| invalid("a device without a number"));
    match kind {
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            // An old archive writes a folder as a file whose name ends in a slash.
            if path.ends_with(b"/") {
                return tree.folder(path, attributes);
            }
            let size = entry.size();
            if size > LARGEST_FILE {
                return Err(invalid("a file of more than 2 TiB"));
            }
            tree.file(path, &attributes, entry, size)
        }
        EntryType::Directory => tree.folder(path, attributes),
        EntryType::Symlink => tree.symlink(path, &target()?, &attributes),
        EntryType::Link => tree.hard_link(path, &target()?),
        EntryType::Fifo => tree.node(path, rustix::fs::FileType::Fifo, 0, &attributes),
        EntryType::Char | EntryType::Block => {
            let header = entry.header();
            let device = rustix::fs::makedev(number(header.device_major())?, number(header.device_minor())?);
            let file_type = if kind == EntryType::Char {
                rustix::fs::FileType::CharacterDevice
            } else {
                rustix::fs::FileType::BlockDevice
            };
            tree.node(path, file_type, device, &attributes)
        }
        _ => Err(invalid(&format!("an entry of type `{}`", char::from(kind.as_byte())))),
    }
}

/// Owner, bits, time and extended attributes of an entry.
fn attributes<R: Read>(entry: &mut Entry<'_, R>) -> io::Result<Attributes> {
    let mut extended = Vec::new();
    if let Some(records) = entry.pax_extensions()? {
        for record in records {
            // The library parts records at line ends, so a value with one comes out as a record that is none.
            let record = record
                .map_err(|_| invalid("an extended header that is broken, or has a line end in a value"))?;
            let key = record.key_bytes();
            if key.starts_with(b"GNU.sparse.") {
                return Err(invalid("a sparse file in the pax format; make the archive with `--format=gnu`"));
            }
            if let Some(name) = key.strip_prefix(b"SCHILY.xattr.")
                && (name.starts_with(b"user.") || name == b"security.capability")
            {
                let name =
                    CString::new(name).map_err(|_| invalid("an attribute with a NUL byte in its name"))?;
                extended.push((name, record.value_bytes().to_owned()));
            }
        }
    }
    let header = entry.header();
    let id = |id: io::Result<u64>| {
        u32::try_from(id?).ok().filter(|id| *id != u32::MAX).ok_or_else(|| invalid("an owner that is no id"))
    };
    Ok(Attributes {
        mode: header.mode()? & 0o7777,
        uid: id(header.uid())?,
        gid: id(header.gid())?,
        mtime: i64::try_from(header.mtime()?).map_err(|_| invalid("a time that is none"))?,
        extended,
    })
}

/// What the library says of a header that is none, without the bytes it quotes.
fn damaged(error: &io::Error) -> io::Error {
    let said = error.to_string();
    let said = said.split(" when getting ").next().unwrap_or_default();
    if matches!(error.kind(), io::ErrorKind::UnexpectedEof) || said.contains("entire block") {
        return io::Error::new(io::ErrorKind::UnexpectedEof, "it ends in the middle of a header");
    }
    io::Error::new(error.kind(), format!("it is no tar archive, or it is damaged: {said}"))
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.to_owned())
}

#[cfg(test)]
mod tests;
