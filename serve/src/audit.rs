//! The audit file: a line for each action, with who did it and its result.
//!
//! Space for a line is reserved before the action, so that nothing is done that cannot be written down.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;
use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind, Result, file_error};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// What is reserved for a line. Longer parts of a line are shortened.
const LINE_BYTES: u64 = 4096;
/// The characters of a part of a line.
const MAX_TEXT: usize = 500;

/// The jobs of a line.
const MAX_STARTED: usize = 64;

/// A line of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// When the action ended (RFC 3339).
    pub(crate) time: String,
    /// Who did it; empty for a caller that is not known.
    pub(crate) user: String,
    /// From where: an address, or the user of the other end of a Unix socket.
    pub(crate) from: String,
    /// What: `submit`, `stop`, `login`.
    pub(crate) action: String,
    /// What it is about, such as a job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) about: String,
    /// The status of the answer.
    pub(crate) status: u16,
    /// The jobs that it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) started: Vec<String>,
    /// The digest of the idempotency key of the request and of its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<[String; 2]>,
}

/// The file.
pub(crate) struct Audit {
    name: String,
    file: Mutex<File>,
}

impl Audit {
    /// Opens the file, and passes on its lines.
    ///
    /// # Errors
    /// It cannot be read and written, or it is not a regular file.
    pub(crate) fn open(path: &Utf8Path, known: &mut dyn FnMut(Line)) -> Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let wrong = |what: &str, error: &std::io::Error| file_error(what, path.as_std_path(), error);
        let file = File::options()
            .create(true)
            .append(true)
            .read(true)
            .mode(0o600)
            // A FIFO must not block.
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(path)
            .map_err(|error| wrong("open", &error))?;
        if !file.metadata().map_err(|error| wrong("read", &error))?.is_file() {
            return Err(Error::new(Kind::Config, format!("the audit file `{path}` is not a regular file")));
        }
        for line in std::io::BufRead::split(std::io::BufReader::new(&file), b'\n') {
            let line = line.map_err(|error| wrong("read", &error))?;
            // A line that was cut off by a full disk or a crash.
            if let Ok(line) = serde_json::from_slice(&line) {
                known(line);
            }
        }
        Ok(Self { name: path.to_string(), file: Mutex::new(file) })
    }

    /// Makes sure that a line can be written.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn reserve(&self) -> Result<()> {
        let file = self.file();
        let length = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
        match fallocate(&*file, FallocateFlags::KEEP_SIZE, length, LINE_BYTES) {
            // Not every file system reserves.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(Error::system(format!("write the audit file `{}`", self.name), errno)),
        }
    }

    /// Writes a line; several for an action that has started many jobs.
    ///
    /// # Errors
    /// The disk is full although space was reserved.
    pub(crate) fn write(&self, line: &Line) -> Result<()> {
        let (first, rest) = line.started.split_at(line.started.len().min(MAX_STARTED));
        self.write_one(line, first)?;
        rest.chunks(MAX_STARTED)
            .try_for_each(|more| self.write_one(&Line { key: None, ..line.clone() }, more))
    }

    fn write_one(&self, line: &Line, started: &[String]) -> Result<()> {
        let line = Line {
            time: Time::now().to_string(),
            about: shorten(&line.about),
            user: shorten(&line.user),
            started: started.iter().map(|job| shorten(job)).collect(),
            ..line.clone()
        };
        let mut text =
            serde_json::to_vec(&line).map_err(|error| Error::new(Kind::State, error.to_string()))?;
        text.push(b'\n');
        let name = Utf8Path::new(&self.name).as_std_path();
        self.file().write_all(&text).map_err(|error| file_error("write", name, &error))
    }

    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_appended_and_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let path = Utf8Path::from_path(&path).unwrap();
        std::fs::write(path, "{\"time\": cut off\n").unwrap();
        let audit = Audit::open(path, &mut |line| panic!("{line:?}")).unwrap();
        audit.reserve().unwrap();
        let line = Line {
            user: "ada\n{}".to_owned(),
            action: "stop".to_owned(),
            about: "x".repeat(10_000),
            status: 200,
            ..Line::default()
        };
        audit.write(&line).unwrap();
        let started: Vec<String> = (0..100).map(|number| format!("lab/a-{number}")).collect();
        audit.write(&Line { started: started.clone(), ..Line::default() }).unwrap();
        let mut found = vec![];
        Audit::open(path, &mut |line| found.push(line)).unwrap();
        let known: Vec<String> = found.drain(1..).flat_map(|line| line.started).collect();
        assert_eq!(known, started, "all jobs of a sweep");
        assert_eq!((found.len(), found[0].user.as_str(), found[0].about.len()), (1, "ada\n{}", MAX_TEXT));
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 4, "one line is one line");
    }

    #[test]
    fn a_device_is_not_an_audit_file() {
        let error = Audit::open(Utf8Path::new("/dev/full"), &mut |_| ()).map(drop).unwrap_err();
        assert_eq!(error.what, "the audit file `/dev/full` is not a regular file");
    }
}
