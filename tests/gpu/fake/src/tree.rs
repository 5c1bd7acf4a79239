//! A directory that files are written into as if it were `/`.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

/// A substitute for a device node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// A node with the driver's numbers, which only root can make and nothing answers; a file where that is not
    /// possible.
    Real,
    /// A node of /dev/null's numbers, which can be opened.
    Null,
    /// A file, which can even be mapped.
    Files,
}

/// The directory.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    nodes: Nodes,
}

impl Tree {
    /// The tree below `root`.
    pub fn new(root: &Path, nodes: Nodes) -> Self {
        Self { root: root.to_owned(), nodes }
    }

    /// Creates a directory, and its parents.
    pub fn directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Writes a file.
    pub fn file(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.place(name)?;
        std::fs::write(path, text)
    }

    /// Makes a link.
    pub fn link(&self, name: &str, to: &str) -> io::Result<()> {
        let path = self.place(name)?;
        std::os::unix::fs::symlink(to, path)
    }

    /// Writes a program that says so.
    pub fn program(&self, name: &str) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.place(name)?;
        std::fs::write(&path, format!("#!/bin/sh\necho \"the simulated /{name}\"\n"))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
    }

    /// Creates a device node that all users may use.
    pub fn node(&self, name: &str, major: u32, minor: u32) -> io::Result<()> {
        let path = self.place(name)?;
        let numbers = match self.nodes {
            Nodes::Real => Some((major, minor)),
            Nodes::Null => Some((1, 3)),
            Nodes::Files => None,
        };
        let mode = Mode::from_raw_mode(0o666);
        if let Some((major, minor)) = numbers {
            match mknodat(CWD, &path, FileType::CharacterDevice, mode, makedev(major, minor)) {
                Ok(()) => return Ok(rustix::fs::chmod(&path, mode)?),
                Err(rustix::io::Errno::PERM) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        // It has one page, so that it can be mapped.
        std::fs::write(&path, [0; 4096])?;
        Ok(rustix::fs::chmod(&path, mode)?)
    }

    fn place(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.root.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Ok(path)
    }
}
