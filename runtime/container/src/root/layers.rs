//! Directories that an overlay lays over each other, read without mounting them.
//!
//! The layers alone determine what an overlay shows (the kernel's Documentation/filesystems/overlayfs.rst): the highest
//! layer with a name wins, directories merge, a character device 0:0 hides the name in lower layers, and an opaque
//! directory hides the lower layers' directory.

pub mod copy;

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, openat2, statat};
use rustix::io::Errno;

use crate::archive::tree::OPAQUE_ATTRIBUTES;

/// Maximum number of links to follow, as in the kernel (path_resolution(7)).
const MAX_SYMLINKS: usize = 40;

/// Directories laid over each other, open.
#[derive(Debug)]
pub struct Layers(Vec<OwnedFd>);

/// The entry of the layers at a path.
#[derive(Clone, Debug)]
pub struct LayerStack {
    /// The highest first.
    pub entries: Vec<LayerEntry>,
    /// Why layers below are not seen; nothing where all were read.
    pub end: Option<StackEnd>,
}

/// The reason to stop searching lower layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEnd {
    /// A whiteout, or an opaque directory.
    Hidden,
    /// Something else than a directory, at the path or above it.
    NotDirectory,
}

/// Where a name of the merged tree comes from.
#[derive(Clone, Copy, Debug)]
pub struct LayerEntry {
    /// The layer, 0 for the lowest.
    pub layer: usize,
    /// The entry.
    pub stat: Stat,
}

impl Layers {
    /// Opens directories, lowest first.
    pub fn open(directories: &[PathBuf]) -> rustix::io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        directories
            .iter()
            .map(|directory| rustix::fs::open(directory, flags, Mode::empty()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Opens a path as a process with the merged tree for its root would find it: no link and no `..` leads out.
    pub fn find(&self, path: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let parts =
            |path: &[u8]| path.split(|&byte| byte == b'/').map(<[u8]>::to_vec).collect::<VecDeque<_>>();
        let (mut done, mut rest, mut links) = (Vec::<Vec<u8>>::new(), parts(path.to_bytes()), 0);
        let mut last = LayerEntry { layer: self.0.len().saturating_sub(1), stat: self.root()? };
        while let Some(name) = rest.pop_front() {
            match &name[..] {
                b"" | b"." => continue,
                b".." => {
                    done.pop();
                    continue;
                }
                _ => done.push(name),
            }
            last = self.lookup(&done, self.0.len())?.ok_or(Errno::NOENT)?;
            if FileType::from_raw_mode(last.stat.st_mode) == FileType::Symlink {
                links += 1;
                if links > MAX_SYMLINKS {
                    return Err(Errno::LOOP);
                }
                let target =
                    rustix::fs::readlinkat(&self.0[last.layer], joined(&done)?, Vec::new())?.into_bytes();
                done.pop();
                if target.starts_with(b"/") {
                    done.clear();
                }
                for name in parts(&target).into_iter().rev() {
                    rest.push_front(name);
                }
            }
        }
        self.open_in(last.layer, &done, flags)
    }

    /// The entry that the lowest `among` layers show at a path, whose directories must not be links.
    pub fn lookup(&self, names: &[Vec<u8>], among: usize) -> rustix::io::Result<Option<LayerEntry>> {
        let stack = self.stack(names, 0..among)?;
        match (stack.entries.first(), stack.end) {
            (None, Some(StackEnd::NotDirectory)) => Err(Errno::NOTDIR),
            (seen, _) => Ok(seen.copied()),
        }
    }

    /// The entries of the layers at a path, the highest first: several directories that merge, or one other file.
    pub fn stack(&self, names: &[Vec<u8>], among: Range<usize>) -> rustix::io::Result<LayerStack> {
        let mut stack = LayerStack { entries: Vec::new(), end: None };
        'layers: for layer in among.rev() {
            let mut opaque = false;
            let mut stat = rustix::fs::fstat(&self.0[layer])?;
            for depth in 1..=names.len() {
                // The lowest layer has nothing to hide.
                opaque |= layer > 0 && depth > 1 && self.is_opaque(layer, &names[..depth - 1]);
                stat = match statat(&self.0[layer], joined(&names[..depth])?, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) if opaque => {
                        stack.end = Some(StackEnd::Hidden);
                        break 'layers;
                    }
                    Err(Errno::NOENT) => continue 'layers,
                    other => other?,
                };
                let kind = FileType::from_raw_mode(stat.st_mode);
                if kind == FileType::CharacterDevice && stat.st_rdev == 0 {
                    stack.end = Some(StackEnd::Hidden);
                    break 'layers;
                }
                if kind != FileType::Directory {
                    stack.end = Some(StackEnd::NotDirectory);
                    if depth == names.len() && stack.entries.is_empty() {
                        stack.entries.push(LayerEntry { layer, stat });
                    }
                    break 'layers;
                }
            }
            stack.entries.push(LayerEntry { layer, stat });
            if opaque || layer > 0 && !names.is_empty() && self.is_opaque(layer, names) {
                stack.end = Some(StackEnd::Hidden);
                break;
            }
        }
        Ok(stack)
    }

    fn is_opaque(&self, layer: usize, names: &[Vec<u8>]) -> bool {
        let directory = self.open_in(layer, names, OFlags::RDONLY | OFlags::DIRECTORY);
        directory.is_ok_and(|directory| is_opaque(&directory))
    }

    /// Opens a path of one layer whose directories are not links.
    pub fn open_in(&self, layer: usize, names: &[Vec<u8>], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        openat2(&self.0[layer], joined(names)?, flags, Mode::empty(), resolve)
    }

    /// The target of a link in one layer.
    pub(crate) fn read_link(&self, layer: usize, names: &[Vec<u8>]) -> rustix::io::Result<CString> {
        let link = self.open_in(layer, names, OFlags::PATH)?;
        rustix::fs::readlinkat(link, c"", Vec::new())
    }

    fn root(&self) -> rustix::io::Result<Stat> {
        rustix::fs::fstat(self.0.last().ok_or(Errno::NOENT)?)
    }
}

/// Whether an open directory hides what lower layers have at its path.
pub fn is_opaque(directory: &OwnedFd) -> bool {
    let says_so = |name: &CStr| {
        let mut value = [0; 2];
        matches!(rustix::fs::fgetxattr(directory, name, &mut value[..]), Ok(1) if value[0] == b'y')
    };
    OPAQUE_ATTRIBUTES.iter().any(|name| says_so(name))
}

fn joined(names: &[Vec<u8>]) -> rustix::io::Result<CString> {
    let path = if names.is_empty() { b".".to_vec() } else { names.join(&b'/') };
    CString::new(path).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests;
