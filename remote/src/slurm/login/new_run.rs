//! The directory of a new run.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobc_sys::error::{AtPath as _, file_error};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::fault::Fault;
use super::question::Login;

/// How long another submission of the same run may take.
const LOCK_TIMEOUT: Duration = Duration::from_mins(2);
/// How often the lock is tried.
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

/// A run that is submitted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct NewRun {
    pub(crate) name: String,
    /// By path below its directory; a directory is before what is in it.
    pub(crate) files: Vec<(String, Upload)>,
    /// Its record, with which it exists.
    pub(crate) record: String,
    /// Directories below that of the target which stay when it is removed; `files` has links to them.
    pub(crate) outputs: Vec<String>,
}

/// What a path of a new run is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Upload {
    Directory(u32),
    File(u32, Bytes),
    Link(String),
}

/// Bytes, which are base64 in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(D::Error::custom)
    }
}

impl NewRun {
    /// Adds a file.
    pub(crate) fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) {
        self.files.push((path.to_owned(), Upload::File(mode, Bytes(bytes.to_vec()))));
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.files.push((path.to_owned(), Upload::Link(target.to_owned())));
    }

    /// Writes all of it over what an attempt that was killed has left, and last the record.
    pub(super) fn write(&self, login: &Login) -> Result<(), Fault> {
        let run = login.run(&self.name);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| file_error("write", &path, &error)
        };
        for part in ["target", "secrets", "files", "target.slurm"] {
            remove(&run.join(part)).map_err(failed(&run.join(part)))?;
        }
        for part in ["jobs", "out", "logs"] {
            fs::create_dir_all(run.join(part)).map_err(failed(&run.join(part)))?;
        }
        for (path, upload) in &self.files {
            upload.write(&run.join(path)).map_err(failed(&run.join(path)))?;
        }
        for output in &self.outputs {
            let path = login.directory.join(output);
            fs::create_dir_all(&path).map_err(failed(&path))?;
        }
        let (new, record) = (run.join("job.new"), run.join("job.json"));
        let written = fs::write(&new, format!("{}\n", self.record));
        written.and_then(|()| fs::rename(&new, &record)).map_err(failed(&record))?;
        Ok(())
    }
}

impl Upload {
    fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        match self {
            Self::Directory(mode) => DirBuilder::new().mode(*mode).create(path),
            Self::Link(target) => symlink(target, path),
            Self::File(mode, bytes) => {
                let mut file =
                    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
                file.write_all(&bytes.0)?;
                file.set_permissions(Permissions::from_mode(*mode))
            }
        }
    }
}

/// Removes a file or a directory that may be missing.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(status) if status.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Makes the directory of a run.
pub(super) fn make(login: &Login, name: &str) -> Result<(), Fault> {
    let (runs, run) = (login.runs(), login.run(name));
    fs::create_dir_all(&runs).at_path("make", &runs)?;
    match DirBuilder::new().mode(0o700).create(&run) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(file_error("make", &run, &error).into())
        }
        _ => Ok(()),
    }
}

/// Makes the directory of a run, and locks it. The lock stays with `sbatch` even if this process is killed, so that a
/// second one never runs beside it.
pub(super) fn lock(login: &Login, name: &str) -> Result<File, Fault> {
    make(login, name)?;
    let path = login.run(name).join("lock");
    let failed = |error: &io::Error| file_error("lock", &path, error);
    let file = OpenOptions::new().append(true).create(true).open(&path).map_err(|error| failed(&error))?;
    let until = Instant::now() + LOCK_TIMEOUT;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(LOCK_INTERVAL),
            Err(Errno::WOULDBLOCK) => return Err(Fault::of("another submission of this job goes on")),
            // Not every file system has locks.
            _ => break,
        }
    }
    fcntl_setfd(&file, FdFlags::empty()).map_err(|errno| failed(&errno.into()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_written_over_what_was_left() {
        let scratch = tempfile::tempdir().unwrap();
        let login = Login::new(scratch.path().to_str().unwrap());
        let mut run = NewRun { name: "x-1".to_owned(), record: "{}".to_owned(), ..NewRun::default() };
        run.file("target/slurm/job.sbatch", 0o755, b"#!/bin/bash\n");
        run.files.push(("secrets".to_owned(), Upload::Directory(0o700)));
        run.file("secrets/token", 0o600, &[0, 255]);
        run.link("files", "/home");
        run.outputs.push("outputs/x/models".to_owned());
        let sent = serde_json::to_string(&run).unwrap();
        let run: NewRun = serde_json::from_str(&sent).unwrap();
        for _ in 0..2 {
            drop(lock(&login, "x-1").unwrap());
            run.write(&login).unwrap();
        }
        let at = |path: &str| scratch.path().join("runs/x-1").join(path);
        let mode = |path: &str| fs::metadata(at(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(fs::read(at("secrets/token")).unwrap(), [0, 255]);
        assert_eq!(
            [mode("secrets"), mode("secrets/token"), mode("target/slurm/job.sbatch"), mode("")],
            [0o700, 0o600, 0o755, 0o700]
        );
        assert_eq!(fs::read_link(at("files")).unwrap(), Path::new("/home"));
        assert_eq!(fs::read_to_string(at("job.json")).unwrap(), "{}\n");
        assert!(scratch.path().join("outputs/x/models").is_dir());
    }
}
