//! A layer from the directory that an overlay has written to: the opposite of unpacking.
//!
//! Whiteouts and opaque directories get the names that layers have for them (image-spec, layer.md). Entries are sorted
//! by name, each directory before what is in it, so the same directory always gives the same bytes.

mod holes;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, openat2};

use crate::ownership::Ownership;
use crate::worker::pack_in_worker;
use jobc_container::root::layers::copy::attribute_names;
use jobc_container::root::layers::is_opaque;
use jobc_container::tar::{Entry, Kind as Is, Time, Writer};
use jobc_sys::error::{Error, Kind, Result, describe_io};

pub use crate::pack_options::PackOptions;

/// Writes the upper directory of an overlay as a layer, uncompressed, to `output`; files keep the owners that they have
/// in the containers of the calling user.
///
/// # Errors
///
/// A file cannot be read, or is truncated meanwhile; `output` fails.
pub fn pack(directory: &Path, pack: &PackOptions, output: &mut dyn Write) -> Result<()> {
    match Ownership::of_current_user()? {
        Ownership::Root => write(directory, pack, output),
        Ownership::SingleUser => write(directory, &PackOptions { all_of_root: true, ..pack.clone() }, output),
        Ownership::Mapped(maps) => pack_in_worker(directory, pack, &maps, output),
    }
}

/// The same by this process's own view of owners.
pub(super) fn write(directory: &Path, pack: &PackOptions, output: &mut dyn Write) -> Result<()> {
    let failed = |error: &io::Error| {
        Error::new(Kind::System, format!("cannot pack `{}`: {}", directory.display(), describe_io(error)))
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(directory, flags, Mode::empty()).map_err(|errno| failed(&errno.into()))?;
    let mut packing = LayerWriter { pack, archive: Writer::new(output), seen: HashMap::new() };
    let whole = packing.write_root(&root).and_then(|()| packing.archive.finish().map(drop));
    whole.map_err(|error| failed(&error))
}

struct LayerWriter<'a> {
    pack: &'a PackOptions,
    archive: Writer<&'a mut dyn Write>,
    /// Files with several names, by device and inode, and the first of them.
    seen: HashMap<(u64, u64), Vec<u8>>,
}

impl LayerWriter<'_> {
    fn write_root(&mut self, root: &OwnedFd) -> io::Result<()> {
        if self.pack.root {
            let stat = rustix::fs::fstat(root)?;
            let mut entry = self.entry(Is::Directory, b"./", &stat);
            entry.attributes = attributes(root)?;
            self.archive.entry(&entry)?;
        }
        if is_opaque(root) {
            self.archive.entry(&self.whiteout(b".wh..wh..opq".to_vec()))?;
        }
        self.write_directory(root, b"")
    }

    /// Writes what is in a directory whose path is `path`, which ends with a slash unless it is the root.
    fn write_directory(&mut self, directory: &OwnedFd, path: &[u8]) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let name = entry?.file_name().to_owned();
            if !matches!(name.as_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            let path = [path, name.as_bytes()].concat();
            if self.pack.without.contains(&path) {
                continue;
            }
            self.write_entry(directory, &name, &path).map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("`{}`: {}", String::from_utf8_lossy(&path), describe_io(&error)),
                )
            })?;
        }
        Ok(())
    }

    fn write_entry(&mut self, directory: &OwnedFd, name: &std::ffi::CStr, path: &[u8]) -> io::Result<()> {
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::CharacterDevice && stat.st_rdev == 0 {
            let (parent, own) = path.split_at(path.len() - name.to_bytes().len());
            return self.archive.entry(&self.whiteout([parent, b".wh.", own].concat()));
        }
        if name.to_bytes().starts_with(b".wh.") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a layer cannot have a name that begins with `.wh.`",
            ));
        }
        if kind == FileType::Directory {
            let inner = open(directory, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
            let path = [path, b"/"].concat();
            let mut entry = self.entry(Is::Directory, &path, &stat);
            entry.attributes = attributes(&inner)?;
            self.archive.entry(&entry)?;
            if is_opaque(&inner) {
                self.archive.entry(&self.whiteout([&path[..], b".wh..wh..opq"].concat()))?;
            }
            return self.write_directory(&inner, &path);
        }
        if stat.st_nlink > 1 {
            let first = self.seen.entry((stat.st_dev, stat.st_ino)).or_insert_with(|| path.to_vec());
            if first.as_slice() != path {
                let link = first.clone();
                let entry = Entry { link, ..self.entry(Is::HardLink, path, &stat) };
                return self.archive.entry(&entry);
            }
        }
        match kind {
            FileType::RegularFile => {
                let file = open(directory, name, OFlags::RDONLY)?;
                let mut entry = self.entry(Is::File, path, &stat);
                entry.size = u64::try_from(stat.st_size).unwrap_or_default();
                entry.attributes = attributes(&file)?;
                let mut file = File::from(file);
                match holes::pieces(&file, &stat)? {
                    None => self.archive.file(&entry, &mut file),
                    Some(pieces) => {
                        let data = &mut holes::PieceReader::new(&file, &pieces);
                        self.archive.sparse_file(&entry, &pieces, data)
                    }
                }
            }
            FileType::Symlink => {
                let link = rustix::fs::readlinkat(directory, name, Vec::new())?.into_bytes();
                let entry = Entry { link, ..self.entry(Is::Symlink, path, &stat) };
                self.archive.entry(&entry)
            }
            FileType::Fifo => self.archive.entry(&self.entry(Is::Fifo, path, &stat)),
            FileType::CharacterDevice | FileType::BlockDevice => {
                let is = if kind == FileType::BlockDevice { Is::Block } else { Is::Character };
                let mut entry = self.entry(is, path, &stat);
                entry.device = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
                self.archive.entry(&entry)
            }
            // A socket is useful only to the process that has bound it.
            _ => Ok(()),
        }
    }

    fn entry(&self, kind: Is, path: &[u8], stat: &Stat) -> Entry {
        let (uid, gid) = if self.pack.all_of_root { (0, 0) } else { (stat.st_uid, stat.st_gid) };
        let time = Time {
            seconds: stat.st_mtime,
            nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or_default(),
        };
        let mode = if kind == Is::Symlink { 0o777 } else { stat.st_mode & 0o7777 };
        Entry { mode, uid, gid, mtime: self.clamp_time(time), ..Entry::new(kind, path) }
    }

    fn whiteout(&self, path: Vec<u8>) -> Entry {
        Entry { mode: 0o644, mtime: self.clamp_time(Time::default()), ..Entry::new(Is::File, path) }
    }

    fn clamp_time(&self, time: Time) -> Time {
        let latest = self.pack.latest.map(|seconds| Time { seconds, nanoseconds: 0 });
        latest.map_or(time, |latest| time.min(latest))
    }
}

fn open(directory: &OwnedFd, name: &std::ffi::CStr, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(directory, name, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)?)
}

/// The attributes of an open file that layers have, sorted.
fn attributes(file: &OwnedFd) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut all = Vec::new();
    for name in attribute_names(file)? {
        let mut value = vec![0; 1 << 16];
        let count = rustix::fs::fgetxattr(file, &name, &mut value[..])?;
        value.truncate(count);
        all.push((name.into_bytes(), value));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
