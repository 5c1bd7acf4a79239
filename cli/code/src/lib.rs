//! Packs the code of a job: the files of a directory as one archive, whose bytes depend on nothing but their names, contents,
//! links and executable bits.
#![forbid(unsafe_code)]

mod limits;
mod mentions;
mod walk;

use std::path::Path;

use camino::Utf8Path;
use flate2::Compression;
use flate2::write::GzEncoder;
use jobc_compiler::files::{CodeError, PackedCode};
use tar::{Builder, EntryType, Header, HeaderMode};

pub use mentions::mentions;
use walk::{Entry, walk};

/// Packs a directory. `shown` is its path as people wrote it.
///
/// # Errors
/// It cannot be read, or is too large.
pub fn pack(directory: &Utf8Path, shown: &str) -> Result<PackedCode, CodeError> {
    let found = walk(directory.as_std_path(), shown)?;
    limits::check(&found, shown)?;
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, entry) in &found.entries {
        append(&mut archive, directory.as_std_path(), path, entry)
            .map_err(|error| walk::unreadable(path, shown, &error))?;
    }
    // Writes to memory do not fail.
    let bytes = archive.into_inner().and_then(GzEncoder::finish).unwrap_or_default();
    let largest = limits::largest(&found);
    let files = found.entries.into_iter().filter(|(_, entry)| matches!(entry, Entry::File(_)));
    let files = files.map(|(path, _)| path).collect();
    Ok(PackedCode { bytes, largest, files, remarks: found.remarks })
}

fn append(
    archive: &mut Builder<GzEncoder<Vec<u8>>>,
    directory: &Path,
    path: &Path,
    entry: &Entry,
) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    match entry {
        Entry::Directory => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            archive.append_data(&mut header, path, std::io::empty())
        }
        Entry::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            header.set_size(0);
            archive.append_link(&mut header, path, target)
        }
        Entry::File(_) => {
            let place = directory.join(path);
            // The whole content first: the size may have changed.
            let bytes = std::fs::read(&place)?;
            header.set_metadata_in_mode(&std::fs::metadata(&place)?, HeaderMode::Deterministic);
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, path, &bytes[..])
        }
    }
}

#[cfg(test)]
mod tests;
