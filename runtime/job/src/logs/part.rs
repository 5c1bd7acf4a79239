//! The numbered files of a task's log.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Where a part is: `000001.log`.
pub fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:06}.log"))
}

/// The numbers of the existing parts, in order; empty if there is no directory.
pub fn list(directory: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_suffix(".log")?.parse().ok();
    let mut numbers: Vec<u64> = entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
    numbers.sort_unstable();
    numbers
}

/// The part that is written to.
#[derive(Debug)]
pub(super) struct Part {
    file: File,
    pub(super) size: u64,
    /// The last write left half a line behind, which could not be taken back.
    torn: bool,
}

impl Part {
    /// Creates a part that does not exist yet, and its directory.
    pub(super) fn create(directory: &Path, number: u64) -> io::Result<Self> {
        let make =
            || OpenOptions::new().create_new(true).append(true).mode(0o600).open(path(directory, number));
        let file = match make() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
                make()?
            }
            other => other?,
        };
        Ok(Self { file, size: 0, torn: false })
    }

    /// Appends lines. On an error the complete lines that were written stay, and `written` is their size in bytes.
    pub(super) fn append(&mut self, lines: &[u8], written: &mut usize) -> io::Result<()> {
        *written = 0;
        if self.torn {
            self.file.write_all(b"\n")?;
            self.size += 1;
            self.torn = false;
        }
        let mut done = 0;
        let result = loop {
            if done == lines.len() {
                break Ok(());
            }
            match self.file.write(&lines[done..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        let whole = lines[..done].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        *written = whole;
        self.size += whole as u64;
        if whole < done && self.file.set_len(self.size).is_err() {
            self.torn = true;
            self.size += (done - whole) as u64;
        }
        result
    }

    /// A part that refuses every write, as on a full disk.
    #[cfg(test)]
    pub(super) fn full() -> Self {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        Self { file, size: 0, torn: false }
    }
}
