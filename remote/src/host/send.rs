//! Files by their digest: the host reports which it lacks, and gets those in one archive.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jobc_container::tar::{Entry, Kind as EntryKind, Writer};
use jobc_schema::digest::{Algorithm, Digest, Hasher};
use jobc_sys::error::{Error, Kind, Result, file_error};

use super::machine::Host;
use super::output::{Input, Output};
use super::store;

/// Timeout for the host's answer.
const ASK_TIMEOUT: Duration = Duration::from_mins(2);
/// How long nothing may move while files are sent and checked.
const SEND_TIMEOUT: Duration = Duration::from_mins(10);
/// Bytes passed to ssh at a time.
const BUFFER: usize = 64 << 10;

/// A file to send.
#[derive(Clone, Debug)]
pub struct SendFile {
    /// The digest of its content (SHA-256).
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Whether it can be executed there.
    pub is_executable: bool,
    /// Where its content is.
    pub source: FileSource,
}

/// Where the content of a file is.
#[derive(Clone, Debug)]
pub enum FileSource {
    /// In a file of this host.
    Path(PathBuf),
    /// In memory.
    Bytes(Vec<u8>),
}

/// The sent files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// How many files were missing.
    pub files: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

impl SendFile {
    /// A file of this host.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| file_error("read", path, &error);
        let mut file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        let (mut hasher, mut size) = (Hasher::new(Algorithm::Sha256), 0);
        let mut buffer = vec![0; BUFFER];
        loop {
            let count = file.read(&mut buffer).map_err(failed)?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
            size += count as u64;
        }
        let (digest, source) = (hasher.finish(), FileSource::Path(path.to_owned()));
        Ok(Self { digest, size, is_executable: mode & 0o100 != 0, source })
    }

    /// A file in memory.
    pub fn bytes(content: Vec<u8>) -> Self {
        let (digest, size) = (Digest::of(&content), content.len() as u64);
        Self { digest, size, is_executable: false, source: FileSource::Bytes(content) }
    }

    /// Its name below `STORE/sha256`: the digits of the digest, with `-x` for a file that can be executed.
    pub fn name(&self) -> String {
        let end = if self.is_executable { "-x" } else { "" };
        format!("{}{end}", self.digest.hex())
    }

    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match &self.source {
            FileSource::Path(path) => Box::new(File::open(path)?),
            FileSource::Bytes(bytes) => Box::new(&bytes[..]),
        })
    }
}

impl Host {
    /// Sends files that a directory on the host does not have yet. Each is kept under its digest, as
    /// `STORE/sha256/HEX`; an existing one is complete.
    ///
    /// One request finds out which are missing; one tar archive contains them. `store` is a path on the host,
    /// relative to the home directory there.
    ///
    /// # Errors
    ///
    /// A file cannot be read or changes meanwhile, the host cannot be reached, or its disk is full.
    pub fn send(&self, store: &str, files: &[SendFile]) -> Result<Sent> {
        let files: BTreeMap<String, &SendFile> = files.iter().map(|file| (file.name(), file)).collect();
        if files.is_empty() {
            return Ok(Sent::default());
        }
        let names: String = files.keys().map(|name| format!("{name}\n")).collect();
        let answer =
            self.run(&["sh", "-c", &store::ask(), "sh", store], Some(names.as_bytes()), ASK_TIMEOUT)?;
        check(self, "look for files", &answer)?;
        transfer(self, store, files.values().copied(), &answer)
    }
}

/// Sends the files that an answer names.
pub(super) fn transfer<'a>(
    host: &Host,
    store: &str,
    files: impl Iterator<Item = &'a SendFile>,
    answer: &Output,
) -> Result<Sent> {
    let names: BTreeSet<&str> = std::str::from_utf8(&answer.stdout).unwrap_or_default().lines().collect();
    let missing: BTreeMap<String, &SendFile> =
        files.map(|file| (file.name(), file)).filter(|(name, _)| names.contains(name.as_str())).collect();
    if missing.is_empty() {
        return Ok(Sent::default());
    }
    let write = |output: &mut dyn Write| {
        let mut archive = Writer::new(BufWriter::with_capacity(BUFFER, output));
        for (name, file) in &missing {
            let entry = Entry {
                mode: if file.is_executable { 0o555 } else { 0o444 },
                size: file.size,
                ..Entry::new(EntryKind::File, name.as_bytes())
            };
            archive.file(&entry, &mut Padded { content: file.open()?, left: file.size })?;
        }
        archive.finish().map(drop)
    };
    let answer = host.run_with(
        &["sh", "-c", &store::receive(), "sh", store],
        Some(&write as Input<'_>),
        SEND_TIMEOUT,
    )?;
    if String::from_utf8_lossy(&answer.stderr).contains("did NOT match") {
        let message = format!("files changed while they were sent to `{}`", host.name());
        return Err(Error::new(Kind::System, message).help("submit again"));
    }
    check(host, "receive files", &answer)?;
    Ok(Sent { files: missing.len(), bytes: missing.values().map(|file| file.size).sum() })
}

/// The error of a script that failed.
pub(super) fn check(host: &Host, what: &str, output: &Output) -> Result<()> {
    if output.status == 0 {
        return Ok(());
    }
    let why = match output.reason() {
        line if line.is_empty() => format!("exit code {}", output.status),
        line => line,
    };
    let why: String = why.chars().filter(|c| !c.is_control()).take(300).collect();
    let error = Error::new(Kind::System, format!("`{}` cannot {what}: {why}", host.name()));
    Err(match output.advice() {
        Some(advice) => error.help(advice),
        None => error,
    })
}

/// A file that has the size it had: if it has become shorter, zeros follow, and its digest is another one.
struct Padded<R> {
    content: R,
    left: u64,
}

impl<R: Read> Read for Padded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..limit];
        let mut count = self.content.read(buffer)?;
        if count == 0 {
            buffer.fill(0);
            count = limit;
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_missing_files_are_sent() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("a b/store");
        let path = directory.path().join("x");
        fs::write(&path, "program").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let program = SendFile::read(&path).unwrap();
        let files = [program.clone(), SendFile::bytes(b"text".to_vec()), SendFile::bytes(vec![])];
        let (host, store) = (Host::local(), store.to_str().unwrap());
        assert_eq!(host.send(store, &files).unwrap(), Sent { files: 3, bytes: 11 });
        assert_eq!(host.send(store, &files).unwrap(), Sent::default());
        let more = [SendFile::bytes(b"more".to_vec()), program.clone()];
        assert_eq!(host.send(store, &more).unwrap(), Sent { files: 1, bytes: 4 });
        let kept = Path::new(store).join("sha256").join(program.name());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "program");
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o555);
        // Nothing else is left there.
        assert_eq!(fs::read_dir(store).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_changes_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, "before").unwrap();
        let file = SendFile::read(&path).unwrap();
        for content in ["after!", "", "much longer than before"] {
            fs::write(&path, content).unwrap();
            let store = directory.path().join("store");
            let error = Host::local().send(store.to_str().unwrap(), std::slice::from_ref(&file)).unwrap_err();
            assert_eq!(error.message(), "files changed while they were sent to `this host`");
            assert!(!store.join("sha256").join(file.name()).exists());
        }
    }

    #[test]
    fn the_reason_of_a_failure_is_the_machines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "").unwrap();
        let error =
            Host::local().send(path.to_str().unwrap(), &[SendFile::bytes(b"x".to_vec())]).unwrap_err();
        assert!(error.message().starts_with("`this host` cannot receive files: mkdir: "), "{error}");
    }
}
