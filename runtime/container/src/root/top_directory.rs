//! An archive or directory whose content lies in one directory, as in `tar -czf rootfs.tar.gz rootfs`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::decompress::decompressing_reader;
use crate::tar::{Kind as Is, Reader};

/// The names of the root of a system (hier(7)).
const ROOT_NAMES: [&str; 19] = [
    "bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt", "proc", "root", "run",
    "sbin", "srv", "sys", "tmp", "usr", "var",
];

/// Names next to `bin` that distinguish a root file system from the directory of an application or a Python
/// environment.
const SYSTEM_NAMES: [&str; 9] = ["dev", "etc", "proc", "root", "sbin", "sys", "tmp", "usr", "var"];

/// Shells, of which a root file system for people has one.
const SHELLS: [&str; 4] = ["bash", "busybox", "dash", "sh"];

/// The only entry of an archive or directory, which is a directory without the name of one of a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopDirectory {
    /// Its name.
    pub name: String,
    /// Whether it holds a root file system: `bin` with a shell, or `bin` next to other directories of a system.
    pub is_root: bool,
}

impl TopDirectory {
    /// That of an archive, which is read only as long as there can be one. `stopped` set to true ends it soon.
    ///
    /// # Errors
    ///
    /// The archive cannot be read, or is damaged.
    pub fn of_archive(path: &Path, stopped: &AtomicBool) -> io::Result<Option<Self>> {
        let file = BufReader::with_capacity(1 << 18, File::open(path)?);
        let mut archive = Reader::new(BufReader::with_capacity(1 << 16, decompressing_reader(file)?));
        let mut top = None;
        let mut inside = Inside::default();
        while let Some(entry) = archive.next()? {
            if stopped.load(Ordering::Relaxed) {
                return Err(io::Error::other("canceled"));
            }
            let path = String::from_utf8_lossy(&entry.path);
            let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
            let Some((first, below)) = parts.split_first() else { continue };
            let known = top.get_or_insert_with(|| (*first).to_owned());
            if known != first
                || below.is_empty() && entry.kind != Is::Directory
                || parts.contains(&"..")
                || ROOT_NAMES.contains(first)
            {
                return Ok(None);
            }
            inside.add(below);
        }
        Ok(top.map(|name| Self { name, is_root: inside.is_root() }))
    }

    /// That of a directory; none if it cannot be read.
    pub fn of_directory(path: &Path) -> Option<Self> {
        let mut entries = fs::read_dir(path).ok()?;
        let (only, None) = (entries.next()?.ok()?, entries.next()) else { return None };
        let name = only.file_name().into_string().ok()?;
        if !only.file_type().ok()?.is_dir() || ROOT_NAMES.contains(&name.as_str()) {
            return None;
        }
        let mut inside = Inside::default();
        for entry in fs::read_dir(only.path()).ok()?.flatten() {
            inside.add(&[&entry.file_name().to_string_lossy()]);
        }
        for shell in SHELLS {
            if fs::symlink_metadata(only.path().join("bin").join(shell)).is_ok() {
                inside.add(&["bin", shell]);
            }
        }
        Some(Self { name, is_root: inside.is_root() })
    }

    /// That of an archive or a directory of this host; none if it cannot be read.
    pub fn of(path: &Path) -> Option<Self> {
        if path.is_dir() {
            return Self::of_directory(path);
        }
        Self::of_archive(path, &AtomicBool::new(false)).ok().flatten()
    }

    /// A note for the user; `source` is the path as the user wrote it.
    pub fn note(&self, source: &str) -> String {
        let name = &self.name;
        if self.is_root {
            format!("all of `{source}` is in its directory `{name}`, which is used as the root file system")
        } else {
            format!(
                "`{source}` has a single directory `{name}`, which does not look like a root file system: \
                 its files are in `/{name}` of the container"
            )
        }
    }
}

/// The relevant names in a top directory.
#[derive(Default)]
struct Inside {
    names: BTreeSet<&'static str>,
    shell: bool,
}

impl Inside {
    /// Takes in a path below the top directory.
    fn add(&mut self, below: &[&str]) {
        if let Some(first) = below.first() {
            self.names.extend(ROOT_NAMES.iter().find(|name| *name == first));
        }
        self.shell |= matches!(below, ["bin", name] | ["usr", "bin", name] if SHELLS.contains(name));
    }

    fn is_root(&self) -> bool {
        let bin = self.names.contains("bin") || self.names.contains("usr");
        let system = SYSTEM_NAMES.iter().filter(|name| self.names.contains(*name)).count();
        bin && (self.shell || system > 1)
    }
}

#[cfg(test)]
mod tests;
