//! Copies files of layers with their attributes: single files, and whole trees if no overlay is possible.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use super::{LayerEntry, Layers};
use crate::archive::tree::is_supported_attribute;
use jobc_sys::sparse::copy_content;

impl Layers {
    /// Copies the merged tree into a directory that is empty: what an overlay of the layers would show.
    pub fn copy_to(&self, to: &Path) -> io::Result<()> {
        self.copy_directory(&mut Vec::new(), to, &mut HashMap::new())
    }

    fn copy_directory(
        &self,
        names: &mut Vec<Vec<u8>>,
        to: &Path,
        linked: &mut HashMap<(usize, u64), PathBuf>,
    ) -> io::Result<()> {
        let stack = self.stack(names, 0..self.0.len())?;
        let mut inner = BTreeSet::new();
        for seen in &stack.entries {
            let directory = self.open_in(seen.layer, names, OFlags::RDONLY | OFlags::DIRECTORY)?;
            for entry in Dir::read_from(&directory)? {
                inner.insert(entry?.file_name().to_bytes().to_vec());
            }
        }
        for name in inner.into_iter().filter(|name| !matches!(&name[..], b"." | b"..")) {
            let path = to.join(OsStr::from_bytes(&name));
            names.push(name);
            if let Some(seen) = self.lookup(names, self.0.len())? {
                if FileType::from_raw_mode(seen.stat.st_mode) == FileType::Directory {
                    fs::create_dir(&path)?;
                    self.copy_directory(names, &path, linked)?;
                } else if let Some(first) = linked.get(&(seen.layer, seen.stat.st_ino)) {
                    fs::hard_link(first, &path)?;
                } else {
                    self.copy_file(&seen, names, &path)?;
                    if seen.stat.st_nlink > 1 {
                        linked.insert((seen.layer, seen.stat.st_ino), path);
                    }
                }
            }
            names.pop();
        }
        let Some(top) = stack.entries.first() else { return Ok(()) };
        let directory = self.open_in(top.layer, names, OFlags::RDONLY | OFlags::DIRECTORY)?;
        copy_attributes(&File::open(to)?, &directory, &top.stat)
    }

    /// Copies a file that is not a directory to a path that does not exist.
    pub fn copy_file(&self, seen: &LayerEntry, from: &[Vec<u8>], to: &Path) -> io::Result<()> {
        let stat = &seen.stat;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let source = File::from(self.open_in(seen.layer, from, OFlags::RDONLY)?);
                let made = File::create_new(to)?;
                copy_content(&source, &made, stat, &|| Ok(()))?;
                return copy_attributes(&made, &OwnedFd::from(source), stat);
            }
            FileType::Symlink => rustix::fs::symlinkat(self.read_link(seen.layer, from)?, CWD, to)?,
            kind => rustix::fs::mknodat(CWD, to, kind, mode, stat.st_rdev)?,
        }
        let (uid, gid) = owner(stat);
        rustix::fs::chownat(CWD, to, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            rustix::fs::chmodat(CWD, to, mode, AtFlags::empty())?;
        }
        Ok(rustix::fs::utimensat(CWD, to, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// Gives a file or directory the owner, bits, attributes and times of another.
pub fn copy_attributes(made: &File, other: &OwnedFd, stat: &Stat) -> io::Result<()> {
    let (uid, gid) = owner(stat);
    rustix::fs::fchown(made, uid, gid)?;
    for name in attribute_names(other)? {
        let mut value = vec![0; 1 << 16];
        let count = rustix::fs::fgetxattr(other, &name, &mut value[..])?;
        rustix::fs::fsetxattr(made, &name, &value[..count], XattrFlags::empty())?;
    }
    rustix::fs::fchmod(made, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    Ok(rustix::fs::futimens(made, &times(stat))?)
}

/// The names of the attributes of an open file that images have, sorted.
pub fn attribute_names(file: impl AsFd) -> io::Result<Vec<CString>> {
    let mut names = vec![0; 1 << 16];
    let count = match rustix::fs::flistxattr(file, &mut names[..]) {
        Err(Errno::NOTSUP) => 0,
        other => other?,
    };
    let mut found: Vec<CString> = names[..count]
        .split_inclusive(|&byte| byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
        .filter(|name| is_supported_attribute(name.to_bytes()))
        .map(CStr::to_owned)
        .collect();
    found.sort();
    Ok(found)
}

fn owner(stat: &Stat) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))
}

fn times(stat: &Stat) -> Timestamps {
    let time = Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec.cast_signed() };
    Timestamps { last_access: time, last_modification: time }
}
