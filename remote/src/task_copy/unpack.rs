//! Writes a tar archive of a task to this host, and nothing outside of its destination.
//!
//! The archive is as untrusted as the task. So names with `..` are refused, no file is written through a link, links
//! that leave the destination are skipped, and special mode bits are dropped.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{BufReader, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use jobc_container::tar::{self, Content, Entry, Reader};
use jobc_sys::error::{AtPath as _, Error, Kind, Result, file_error};

use crate::place::Copied;

/// Bytes read from the pipe at a time.
const BUFFER: usize = 64 << 10;

/// Writes the entries below `name` to `destination`.
///
/// # Errors
///
/// The archive breaks off or leads out of the destination, or something cannot be written.
pub(super) fn unpack(mut input: File, name: &str, destination: &Path) -> Result<Copied> {
    let mut unpacking = Unpacking { name, destination, modes: Vec::new(), copied: Copied::default() };
    let result = unpacking.run(&input);
    // The command waits until the whole archive was read, also after an error.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
    result.map(|()| unpacking.copied)
}

/// An archive that is being written.
struct Unpacking<'a> {
    name: &'a str,
    destination: &'a Path,
    /// Modes of directories, which are set at the end: one may forbid writing.
    modes: Vec<(PathBuf, u32)>,
    copied: Copied,
}

impl Unpacking<'_> {
    fn run(&mut self, input: &File) -> Result<()> {
        let broken = |error: std::io::Error| {
            Error::new(Kind::System, "the archive of the task is broken").because(error)
        };
        let mut archive = Reader::new(BufReader::with_capacity(BUFFER, input));
        while let Some(entry) = archive.next().map_err(broken)? {
            let path = Path::new(OsStr::from_bytes(&entry.path));
            let Some(below) = below(path, self.name) else {
                let message =
                    format!("the task sent the path `{}`, which leads out of the copy", path.display());
                return Err(Error::new(Kind::Unsupported, message).help("nothing was written there"));
            };
            check_parents(self.destination, &below)?;
            self.write(&mut archive, &entry, &below)?;
        }
        for (path, mode) in self.modes.iter().rev() {
            std::fs::set_permissions(path, Permissions::from_mode(*mode)).at_path("set the mode of", path)?;
        }
        Ok(())
    }

    fn target(&self, below: &Path) -> PathBuf {
        if below.as_os_str().is_empty() { self.destination.to_owned() } else { self.destination.join(below) }
    }

    /// Writes an entry.
    fn write(&mut self, archive: &mut Reader<BufReader<&File>>, entry: &Entry, below: &Path) -> Result<()> {
        let target = self.target(below);
        let failed = |error: std::io::Error| file_error("write", &target, &error);
        let mode = entry.mode & 0o777;
        let link = Path::new(OsStr::from_bytes(&entry.link));
        match entry.kind {
            tar::Kind::Directory => {
                match DirBuilder::new().mode(0o700).create(&target) {
                    Ok(()) => {}
                    Err(error)
                        if error.kind() == ErrorKind::AlreadyExists && is_own_directory(below, &target) => {}
                    Err(error) => return Err(failed(error)),
                }
                self.modes.push((target, mode));
            }
            tar::Kind::File => {
                remove(&target)?;
                let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&target);
                let mut file = file.map_err(failed)?;
                self.copied.bytes +=
                    std::io::copy(&mut Content::new(archive, entry), &mut file).map_err(failed)?;
            }
            tar::Kind::Symlink => {
                if !stays_inside(below, link) {
                    let skipped =
                        format!("the link `{}` leads out of the copy: `{}`", below.display(), link.display());
                    self.copied.skipped.push(skipped);
                    return Ok(());
                }
                remove(&target)?;
                symlink(link, &target).map_err(failed)?;
            }
            tar::Kind::HardLink => {
                // The name of an earlier entry.
                let Some(earlier) = self::below(link, self.name) else {
                    self.copied.skipped.push(format!("`{}` is a link to another file", below.display()));
                    return Ok(());
                };
                check_parents(self.destination, &earlier)?;
                remove(&target)?;
                std::fs::hard_link(self.target(&earlier), &target).map_err(failed)?;
            }
            tar::Kind::Fifo | tar::Kind::Character | tar::Kind::Block => {
                self.copied.skipped.push(format!("`{}` is not a file", below.display()));
                return Ok(());
            }
        }
        self.copied.entries += 1;
        Ok(())
    }
}

/// The part of an entry's path below the name that was asked for; none if it leads elsewhere.
fn below(path: &Path, name: &str) -> Option<PathBuf> {
    let mut parts = path.components().filter(|part| !matches!(part, Component::CurDir));
    if parts.next()? != Component::Normal(name.as_ref()) {
        return None;
    }
    parts.map(|part| if let Component::Normal(part) = part { Some(part) } else { None }).collect()
}

/// Every directory above a target must be one, not a link to one.
fn check_parents(destination: &Path, below: &Path) -> Result<()> {
    let Some(parent) = below.parent() else { return Ok(()) };
    let mut path = destination.to_owned();
    // The destination itself is the user's, and may be a link.
    for part in parent.components() {
        path.push(part);
        let is_directory = match std::fs::symlink_metadata(&path) {
            Ok(status) => status.is_dir(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // An archive may leave out directories.
                return DirBuilder::new()
                    .recursive(true)
                    .create(destination.join(parent))
                    .at_path("create", &path);
            }
            Err(error) => return Err(file_error("read", &path, &error)),
        };
        if !is_directory {
            let message = format!("`{}` is not a directory; the task sent a path through it", path.display());
            return Err(Error::new(Kind::Unsupported, message).help("copy to another destination"));
        }
    }
    Ok(())
}

/// Files may be written into an existing directory; through a link to one only if it is the destination.
fn is_own_directory(below: &Path, target: &Path) -> bool {
    if below.as_os_str().is_empty() {
        target.is_dir()
    } else {
        std::fs::symlink_metadata(target).is_ok_and(|status| status.is_dir())
    }
}

/// Removes a file or a link that is in the way; links are not followed.
fn remove(target: &Path) -> Result<()> {
    match std::fs::remove_file(target) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(file_error("replace", target, &error)),
    }
}

/// Whether a link of an entry leads to something of the copy. After a name, which may be a link itself, `..` may lead
/// anywhere.
fn stays_inside(below: &Path, link: &Path) -> bool {
    let mut depth = below.components().count().saturating_sub(1);
    let mut has_name = false;
    for part in link.components() {
        match part {
            Component::Normal(_) => has_name = true,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 && !has_name => depth -= 1,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
