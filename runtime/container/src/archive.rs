//! A root file system from an archive: rootfs.tar, .tar.gz or .tgz. It is untrusted input.
//!
//! Every entry is placed below a file descriptor of the new root by openat2(2) `RESOLVE_IN_ROOT`, so that no name and
//! no link in the archive can escape it; see [`tree`]. The new root is renamed to its final path last: a root that
//! exists is complete.

mod attributes;
mod directories;
mod invalid;
mod path;
pub mod tree;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::decompress::{LimitedReader, decompressing_reader, read_ahead};
use crate::remove::remove;
use crate::tar::{ArchiveEnd, Entry, Kind as Is, Reader};
use invalid::invalid;
use jobc_sys::error::{Error, Kind, Result, describe_io};
use tree::{FileAttributes, Owners, Tree};

/// The largest file, so that a few bytes which claim to be a sparse file without end cost no hours.
const MAX_FILE_SIZE: u64 = 2 << 40;

/// Unpacks an archive to a directory that does not exist yet.
///
/// If root starts it, everything gets the owner, group, device number, permission bits and file capabilities of the
/// archive. If another user starts it, everything belongs to that user, and set-user-id bits and devices below /dev,
/// which every container gets from the runtime, are left out. On an error nothing is left behind. Leftovers of a killed
/// run are removed.
pub fn unpack(archive: &Path, root: &Path) -> Result<()> {
    unpack_cancelable(&AtomicBool::new(false), archive, root)
}

/// As [`unpack`], but fails soon after `stopped` becomes true.
pub fn unpack_cancelable(stopped: &AtomicBool, archive: &Path, root: &Path) -> Result<()> {
    let owners = if rustix::process::geteuid().is_root() { Owners::FromArchive } else { Owners::CurrentUser };
    unpack_as(archive, root, owners, stopped)
}

/// As [`unpack`] for an archive that is data: all files belong to this user, as if an unprivileged user had started it.
pub fn unpack_data_cancelable(stopped: &AtomicBool, archive: &Path, directory: &Path) -> Result<()> {
    unpack_as(archive, directory, Owners::CurrentUser, stopped)
}

fn unpack_as(archive: &Path, root: &Path, owners: Owners, stopped: &AtomicBool) -> Result<()> {
    let begun = root.with_extension("part");
    remove(&begun)?;
    let result = make(archive, &begun, owners, stopped).and_then(|()| {
        fs::rename(&begun, root).map_err(|error| {
            Error::new(Kind::System, format!("cannot name `{}`", root.display())).because(error)
        })
    });
    if result.is_err() {
        // The first error is reported.
        let _ = remove(&begun);
    }
    result
}

fn make(archive: &Path, root: &Path, owners: Owners, stopped: &AtomicBool) -> Result<()> {
    let shown = archive.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::new(Kind::System, format!("no space left to unpack `{shown}` to `{}`", root.display()))
                .help("unpack it to a directory on a larger disk, and use that as the root")
        }
        io::ErrorKind::UnexpectedEof => Error::new(Kind::System, format!("`{shown}` is truncated: {error}")),
        _ => Error::new(Kind::System, format!("cannot unpack `{shown}`: {}", describe_io(&error))),
    };
    fs::create_dir(root).map_err(failed)?;
    let mut tree = Tree::new(root, owners).map_err(failed)?;
    let file = BufReader::with_capacity(1 << 18, File::open(archive).map_err(failed)?);
    let content = LimitedReader::new(decompressing_reader(file).map_err(failed)?, u64::MAX, stopped);
    read_ahead::with_read_ahead(
        content,
        |_| {},
        |content| {
            if extract(&mut tree, content, u64::MAX, stopped)? == ArchiveEnd::Unmarked {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has no end-of-archive marker"));
            }
            tree.finish()
        },
    )
    .map_err(failed)
}

/// Puts the entries of an archive into a tree, at most `most` of them, and reads the archive to its last byte.
///
/// # Errors
///
/// `InvalidData` and `UnexpectedEof` for an invalid archive, with the entry's name; errors of the file system.
pub fn extract(
    tree: &mut Tree,
    archive: impl BufRead,
    most: u64,
    stopped: &AtomicBool,
) -> io::Result<ArchiveEnd> {
    let mut reader = Reader::new(archive);
    let mut count = 0;
    while let Some(entry) = reader.next().map_err(damaged)? {
        if stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("canceled"));
        }
        count += 1;
        if count > most {
            return Err(invalid(&format!("more than {most} entries")));
        }
        extract_entry(&entry, &mut reader, tree).map_err(|error| {
            let name = String::from_utf8_lossy(&entry.path);
            io::Error::new(error.kind(), format!("`{name}`: {}", describe_io(&error)))
        })?;
    }
    let end = reader.end().unwrap_or(ArchiveEnd::Unmarked);
    let mut rest = reader.into_inner();
    loop {
        match rest.fill_buf()?.len() {
            0 => return Ok(end),
            _ if stopped.load(Ordering::Relaxed) => return Err(io::Error::other("canceled")),
            count => rest.consume(count),
        }
    }
}

/// Puts one entry into the tree.
fn extract_entry<R: BufRead>(entry: &Entry, reader: &mut Reader<R>, tree: &mut Tree) -> io::Result<()> {
    if tree.apply_whiteout(&entry.path)? {
        return Ok(());
    }
    let attributes = FileAttributes::of(entry)?;
    match entry.kind {
        Is::File if entry.size > MAX_FILE_SIZE => Err(invalid("a file of more than 2 TiB")),
        Is::File => tree.file(entry, &attributes, reader),
        Is::Directory => tree.directory(&entry.path, &attributes),
        Is::Symlink | Is::HardLink if entry.link.is_empty() => Err(invalid("a link with an empty target")),
        Is::Symlink => tree.symlink(&entry.path, &entry.link, &attributes),
        Is::HardLink => tree.hard_link(&entry.path, &entry.link),
        Is::Fifo => tree.node(&entry.path, rustix::fs::FileType::Fifo, 0, &attributes),
        Is::Character | Is::Block => {
            let (major, minor) = entry.device;
            let kind = if entry.kind == Is::Character {
                rustix::fs::FileType::CharacterDevice
            } else {
                rustix::fs::FileType::BlockDevice
            };
            tree.node(&entry.path, kind, rustix::fs::makedev(major, minor), &attributes)
        }
    }
}

/// An error of the archive itself, rather than of one of its entries.
fn damaged(error: io::Error) -> io::Error {
    let message = error.to_string();
    // The reader names the entry where it knows it.
    if error.kind() != io::ErrorKind::InvalidData || message.starts_with('`') {
        return error;
    }
    io::Error::new(error.kind(), format!("not a tar archive, or damaged: {message}"))
}

#[cfg(test)]
mod tests;
