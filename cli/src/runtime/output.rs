//! Writes files: one atomically, or those of a directory that no other process uses.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use camino::Utf8Path;
use jobc_compiler::compile::Artifact;
use jobc_sys::error::{AtPath as _, Result};
use jobc_sys::write_atomic::{Durability, write_atomic};

use crate::platform::files;

/// Writes a file atomically, and makes its directory.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).at_path("write", path)?;
    }
    write_atomic(path, text.as_bytes(), 0o666, Durability::Disk).at_path("write", path)
}

/// Writes artifacts into a new directory.
pub(crate) fn write_new_directory(directory: &Path, artifacts: &[Artifact]) -> io::Result<()> {
    fs::create_dir(directory)?;
    let mut made: BTreeSet<&Utf8Path> = BTreeSet::new();
    for artifact in artifacts {
        let path = directory.join(&artifact.path);
        if let Some(parent) = artifact.path.parent()
            && made.insert(parent)
        {
            fs::create_dir_all(directory.join(parent))?;
        }
        let mut file = files::create_new(&path, artifact.mode)?;
        io::Write::write_all(&mut file, &artifact.bytes)?;
    }
    Ok(())
}
