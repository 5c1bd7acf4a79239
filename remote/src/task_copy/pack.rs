//! Writes files of this host as a tar archive.

use std::fs::{File, Metadata};
use std::io::{BufWriter, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use jobc_container::tar::{Entry, Kind, Time, Writer};
use jobc_sys::error::{AtPath as _, Result, file_error};

use crate::place::Copied;

/// Bytes written to the pipe at a time.
const BUFFER: usize = 64 << 10;

/// Writes a file or a directory under a name. Owners are left out; sockets, pipes and devices are skipped.
///
/// # Errors
///
/// A file cannot be read; or the other end of the pipe is closed, whose reason the other end knows.
pub(super) fn pack(source: &Path, name: &str, output: File) -> Result<Copied> {
    let mut archive = Writer::new(BufWriter::with_capacity(BUFFER, output));
    let mut copied = Copied::default();
    // A link that is named itself is followed, as cp does.
    let status = std::fs::metadata(source).at_path("read", source)?;
    add(&mut archive, source, Path::new(name), &status, &mut copied)?;
    archive.finish().at_path("send", source)?;
    Ok(copied)
}

fn add(
    archive: &mut Writer<BufWriter<File>>,
    path: &Path,
    name: &Path,
    status: &Metadata,
    copied: &mut Copied,
) -> Result<()> {
    let failed = |error: std::io::Error| file_error("copy", path, &error);
    let kind = status.file_type();
    if kind.is_socket() || kind.is_fifo() || kind.is_char_device() || kind.is_block_device() {
        copied.skipped.push(format!("`{}` is not a file", path.display()));
        return Ok(());
    }
    let entry = |kind| Entry {
        mode: status.mode() & 0o7777,
        // Whole seconds need no extended header, which small programs do not read.
        mtime: Time { seconds: status.mtime(), nanoseconds: 0 },
        ..Entry::new(kind, name.as_os_str().as_bytes())
    };
    copied.entries += 1;
    if kind.is_symlink() {
        let target = std::fs::read_link(path).map_err(failed)?;
        let link = target.as_os_str().as_bytes().to_vec();
        return archive.entry(&Entry { link, ..entry(Kind::Symlink) }).map_err(failed);
    }
    if kind.is_dir() {
        archive.entry(&entry(Kind::Directory)).map_err(failed)?;
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let mut entries = entries.map_err(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let status = entry.metadata().at_path("read", &path)?;
            add(archive, &path, &name.join(entry.file_name()), &status, copied)?;
        }
        return Ok(());
    }
    let file = File::open(path).map_err(failed)?;
    // A file that changes meanwhile must have the size that its header says.
    let size = file.metadata().map_err(failed)?.len();
    let mut content = Exact { file, left: size };
    archive.file(&Entry { size, ..entry(Kind::File) }, &mut content).map_err(failed)?;
    copied.bytes += size;
    Ok(())
}

/// A file that has the size it had: if it has become shorter, zeros follow.
struct Exact {
    file: File,
    left: u64,
}

impl Read for Exact {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut count = self.file.read(buffer)?;
        if count == 0 && self.left > 0 {
            count = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            buffer[..count].fill(0);
        }
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}
