//! Writes files into a directory that no other process uses.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use camino::Utf8Path;
use jobc_compiler::compile::Artifact;

use crate::platform::files;

/// Writes artifacts into a new directory.
pub(crate) fn write_new_directory(directory: &std::path::Path, artifacts: &[Artifact]) -> io::Result<()> {
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
