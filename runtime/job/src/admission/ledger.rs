//! The claims of all users' jobs: a directory with a file for each, whose lock its supervisor holds.
//!
//! The directory is world-writable, so its content is not trusted beyond what each owner can say about itself: files
//! are opened without following links or waiting for pipes, only regular files of a bounded size count, and each counts
//! for the user that owns it. A user can keep the jobs of others from starting by claiming the whole host, but cannot
//! make them fail otherwise. A file's name begins with its state, so that a change of it is one rename.

pub mod turns;

use std::cmp::Ordering;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::devices::{DeviceLocks, LockError, lock_devices};
use crate::directory::JobDirectories;
use crate::record::Claim;
use jobc_gpu::demand::Demands;
use jobc_gpu::lease::GpuLease;
use jobc_sys::error::{AtPath as _, Error, Kind, Result, errno_of};
use jobc_sys::id::JobId;
use jobc_sys::write_atomic::{AtomicFile, Durability};

/// Where the ledger is unless [`DIRECTORY_VARIABLE`] names another directory: a place for locks that is emptied at each
/// start.
pub const DIRECTORY: &str = "/run/lock/jobc";

/// The variable that names another directory, for tests and for hosts that are shared in parts.
pub const DIRECTORY_VARIABLE: &str = "JOBC_LOCK_DIR";

/// Maximum bytes read of a file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// How long another may hold the directory's lock, which is needed for some milliseconds. After that it is done
/// without: at worst two jobs are admitted at the same moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// What a user had of a host, as a job of theirs recorded it when it was entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PastUse {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Seconds of GPUs, of which the older count less.
    pub gpu_seconds: f64,
    /// Seconds of CPUs.
    pub cpu_seconds: f64,
}

/// A directory of claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    directory: PathBuf,
    /// A note for the user: other users' jobs are not counted.
    pub note: Option<String>,
}

/// The state of a job's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// It holds its ports; it has not requested the rest.
    Entered,
    /// It waits for its share.
    Waiting,
    /// It has its share.
    Admitted,
}

/// A job in the ledger.
#[derive(Debug)]
pub struct Entry {
    /// The job.
    pub id: String,
    /// The UID of the owner of the file.
    pub uid: u32,
    /// Its claim.
    pub claim: Claim,
    /// Its state.
    pub state: EntryState,
    /// Its GPU request, once it has made one.
    pub demands: Demands,
    /// When its state changed last, in seconds since 1970 by this host's clock; 0 of one that this process entered.
    pub since: u64,
    /// What its user had of the host before; nothing without fair share.
    pub past: PastUse,
    /// When it was entered: nanoseconds since the host's start.
    ticket: u64,
    /// Its file, locked by the process that created it.
    file: Option<EntryFile>,
}

/// The file of a job that this process has entered.
#[derive(Debug)]
struct EntryFile {
    path: PathBuf,
    _locked: File,
    /// Its GPUs.
    _devices: DeviceLocks,
}

/// Ports that no other command gets while this exists: those of a job whose supervisor has not entered them yet.
#[derive(Debug)]
pub struct PortReservation {
    _file: EntryFile,
}

/// The content of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    id: String,
    ticket: u64,
    claim: Claim,
    #[serde(default, skip_serializing_if = "Demands::is_empty")]
    demands: Demands,
    #[serde(default)]
    past: PastUse,
}

/// The decision on a job's request.
#[derive(Debug)]
pub(super) struct Decision<T> {
    /// Its new state.
    pub(super) state: EntryState,
    /// Its leased GPUs, locked.
    pub(super) leased: Option<(GpuLease, DeviceLocks)>,
    /// The answer to it.
    pub(super) answer: Result<T>,
}

const ENTRY_STATES: [(EntryState, &str); 3] =
    [(EntryState::Entered, "entered"), (EntryState::Waiting, "waiting"), (EntryState::Admitted, "admitted")];

/// The file name prefix of a [`PortReservation`].
const PORT_RESERVATION_PREFIX: &str = "chosen";

impl Drop for EntryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Entry {
    /// Compares the times of the requests; less is earlier.
    pub(super) fn cmp_request(&self, other: &Self) -> Ordering {
        (self.ticket, self.uid, &self.id).cmp(&(other.ticket, other.uid, &other.id))
    }

    /// The job, for people: with its user if that is another one.
    pub(super) fn owner(&self) -> String {
        if self.uid == rustix::process::geteuid().as_raw() {
            format!("`{}`", self.id)
        } else {
            format!("`{}` of user {}", self.id, self.uid)
        }
    }

    /// Whether both are the same request, perhaps read at different moments.
    pub(super) fn is_same_request(&self, other: &Self) -> bool {
        self.cmp_request(other) == Ordering::Equal
    }
}

impl Ledger {
    /// The host's ledger; if it is not available, one of this user's own next to their jobs' state, which
    /// [`note`](Self::note) reports.
    pub fn standard(places: &JobDirectories) -> Result<Self> {
        let named = std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute());
        let directory = named.unwrap_or_else(|| PathBuf::from(DIRECTORY));
        // Images of containers often lack /run/lock; only root can make it.
        if let Some(parent) = directory.parent().filter(|parent| !parent.exists()) {
            let _ = DirBuilder::new().mode(0o755).create(parent);
        }
        match create_world_writable(&directory) {
            Ok(()) => Ok(Self { directory, note: None }),
            Err(errno) => {
                let own = places.state.with_file_name("claims");
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(&own)
                    .at_path("create the directory", &own)?;
                let why = jobc_sys::error::describe(errno);
                let message = format!(
                    "jobs of other users are not counted: `{}` cannot be used: {why}",
                    directory.display()
                );
                Ok(Self { directory: own, note: Some(message) })
            }
        }
    }

    /// The ledger in an existing directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), note: None }
    }

    /// Its directory: a job that waits for resources can watch it for changes (inotify(7)).
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The entries of running supervisors.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let _locked = self.lock()?;
        Ok(self.read(None))
    }

    /// The claims of admitted jobs. It waits for no lock: a job that is being admitted may be missing, or be there twice.
    pub(super) fn peek_claims(&self) -> Vec<Claim> {
        let admitted = self.file_names().into_iter().filter(|(name, _)| name.starts_with("admitted-"));
        let live = admitted.filter_map(|(_, path)| open(&path)).filter(|(file, ..)| {
            rustix::fs::flock(file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
        });
        live.map(|(_, _, content)| content.claim).collect()
    }

    /// Adds a job, and returns the other entries.
    pub(super) fn enter(&self, id: &JobId, claim: &Claim, past: PastUse) -> Result<(Entry, Vec<Entry>)> {
        let _locked = self.lock()?;
        let others = self.read(None);
        let ticket = nanos_since_boot();
        let uid = rustix::process::geteuid().as_raw();
        let demands = Demands::default();
        let content = Content { id: id.to_string(), ticket, claim: claim.clone(), demands, past };
        // Jobs of the same name in different state directories are different jobs, as are two entries of one process.
        let rest = format!("{uid}-{id}-{}-{ticket:x}", std::process::id());
        let path = self.directory.join(format!("entered-{rest}"));
        let locked = write(&path, &content)?;
        let entry = Entry {
            id: content.id,
            uid,
            claim: content.claim,
            state: EntryState::Entered,
            demands: content.demands,
            since: 0,
            past,
            ticket,
            file: Some(EntryFile { path, _locked: locked, _devices: DeviceLocks::default() }),
        };
        Ok((entry, others))
    }

    /// Decides on an entry with a view of all others, while no other process decides.
    pub(super) fn decide_entry<T>(
        &self,
        entry: &mut Entry,
        demands: &Demands,
        decide: impl FnOnce(&Entry, &[Entry]) -> Decision<T>,
    ) -> Result<T> {
        let _locked = self.lock()?;
        let own = entry.file.as_ref().map(|own| own.path.as_path());
        // Entries in state `Entered` hold no resources except ports; skip them.
        let others = self.read_matching(own, |standing| standing != EntryState::Entered);
        let Decision { state: standing, leased, answer } = decide(entry, &others);
        if standing == entry.state && leased.is_none() {
            return answer;
        }
        let Some(own) = &mut entry.file else { return answer };
        let word = ENTRY_STATES.iter().find(|(known, _)| *known == standing).map_or("", |(_, word)| word);
        let name = own.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let rest = name.split_once('-').map_or("", |(_, rest)| rest);
        let path = self.directory.join(format!("{word}-{rest}"));
        if leased.is_none() && entry.demands == *demands {
            std::fs::rename(&own.path, &path).at_path("rename", &own.path)?;
            own.path = path;
        } else {
            let (leased, devices) = leased.unwrap_or_default();
            let (id, ticket) = (entry.id.clone(), entry.ticket);
            let claim = Claim { leased, ..entry.claim.clone() };
            let content = Content { id, ticket, claim, demands: demands.clone(), past: entry.past };
            let locked = write(&path, &content)?;
            // For a moment two copies exist: at worst a process that could not wait for the lock counts it twice.
            let new = EntryFile { path, _locked: locked, _devices: devices };
            drop(std::mem::replace(own, new));
            entry.claim = content.claim;
            entry.demands = content.demands;
        }
        entry.state = standing;
        answer
    }

    /// Writes an entry anew whose file was removed by another; nothing if it is there.
    ///
    /// # Errors
    ///
    /// It cannot be written, or another job has a device of it meanwhile.
    pub(super) fn restore(&self, entry: &mut Entry) -> Option<Result<()>> {
        let path = entry.file.as_ref()?.path.clone();
        if path.symlink_metadata().is_ok() {
            return None;
        }
        // Its locks may be on files that nothing finds, or still hold.
        if let Some(mut gone) = entry.file.take() {
            gone.path = PathBuf::new();
        }
        Some(self.write_again(entry, path))
    }

    fn write_again(&self, entry: &mut Entry, path: PathBuf) -> Result<()> {
        create_world_writable(&self.directory)
            .map_err(|errno| Error::system(format!("make `{}`", self.directory.display()), errno))?;
        let _locked = self.lock()?;
        let devices = lock_devices(&self.directory, &entry.claim.leased).map_err(|error| match error {
            LockError::Taken(device) => {
                Error::new(Kind::State, format!("another job has taken GPU {}", device.gpu))
            }
            LockError::Failed(error) => error,
        })?;
        let (id, claim, demands) = (entry.id.clone(), entry.claim.clone(), entry.demands.clone());
        let content = Content { id, ticket: entry.ticket, claim, demands, past: entry.past };
        let locked = write(&path, &content)?;
        entry.file = Some(EntryFile { path, _locked: locked, _devices: devices });
        Ok(())
    }

    /// Chooses ports that no job and no other command has, and reserves them; none if no port was chosen.
    ///
    /// `choose` is given what is taken, and returns its choice.
    pub(super) fn choose_ports(
        &self,
        choose: impl FnOnce(&dyn Fn(u16) -> bool) -> Result<Vec<u16>>,
    ) -> Result<Option<PortReservation>> {
        let _locked = self.lock()?;
        let mut taken: Vec<u16> = self.read(None).into_iter().flat_map(|entry| entry.claim.ports).collect();
        taken.extend(self.reserved_ports());
        let ports = choose(&|port| taken.contains(&port))?;
        if ports.is_empty() {
            return Ok(None);
        }
        let ticket = nanos_since_boot();
        let claim = Claim { ports, ..Claim::default() };
        let uid = rustix::process::geteuid().as_raw();
        let name = format!("{PORT_RESERVATION_PREFIX}-{uid}-{}-{ticket:x}", std::process::id());
        let content = Content {
            id: String::new(),
            ticket,
            claim,
            demands: Demands::default(),
            past: PastUse::default(),
        };
        let path = self.directory.join(name);
        let locked = write(&path, &content)?;
        Ok(Some(PortReservation {
            _file: EntryFile { path, _locked: locked, _devices: DeviceLocks::default() },
        }))
    }

    /// The ports that other commands have reserved.
    fn reserved_ports(&self) -> Vec<u16> {
        let names =
            self.file_names().into_iter().filter(|(name, _)| name.starts_with(PORT_RESERVATION_PREFIX));
        names.filter_map(|(_, path)| read_live(&path)).flat_map(|(_, content)| content.claim.ports).collect()
    }

    /// Reads the entries of other running supervisors, and removes this user's stale entries.
    fn read(&self, own: Option<&Path>) -> Vec<Entry> {
        self.read_matching(own, |_| true)
    }

    fn read_matching(&self, own: Option<&Path>, wanted: impl Fn(EntryState) -> bool) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (name, path) in self.file_names() {
            let standing = ENTRY_STATES.iter().find(|(_, word)| name.split('-').next() == Some(word));
            let standing = standing.filter(|(standing, _)| own != Some(path.as_path()) && wanted(*standing));
            let Some((standing, _)) = standing else { continue };
            let Some((Owner { uid, since }, content)) = read_live(&path) else { continue };
            entries.push(Entry {
                id: content.id,
                uid,
                claim: content.claim,
                state: *standing,
                demands: content.demands,
                since,
                past: content.past,
                ticket: content.ticket,
                file: None,
            });
        }
        entries
    }

    fn file_names(&self) -> Vec<(String, PathBuf)> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut names: Vec<(String, PathBuf)> =
            entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect();
        names.sort();
        names
    }

    /// Takes the directory's lock.
    fn lock(&self) -> Result<OwnedFd> {
        let failed = |errno| Error::system(format!("open `{}`", self.directory.display()), errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&self.directory, flags, Mode::empty()).map_err(failed)?;
        let began = Instant::now();
        loop {
            match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if began.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(Errno::INTR) => {}
                Ok(()) | Err(Errno::WOULDBLOCK) => return Ok(directory),
                Err(errno) => return Err(failed(errno)),
            }
        }
    }
}

/// Writes a file, locked; it has its name when it is whole.
fn write(path: &Path, content: &Content) -> Result<File> {
    let failed = |error: std::io::Error| {
        jobc_sys::error::file_error("write", path, &error).help("the directory must be writable by all users")
    };
    let write = || {
        let mut file = AtomicFile::create(path, 0o644)?;
        rustix::fs::flock(file.file(), FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(&serde_json::to_vec(content)?)?;
        // Others must be able to read it regardless of our umask.
        rustix::fs::fchmod(file.file(), Mode::from_raw_mode(0o644))?;
        // Its claim ends with this process.
        file.commit(Durability::Rename)
    };
    write().map_err(failed)
}

/// Whose a file of the ledger is.
struct Owner {
    uid: u32,
    /// When it was written or renamed, in seconds since 1970.
    since: u64,
}

/// The owner and the content of a file whose process lives; the file of a dead one is removed if it is this user's.
fn read_live(path: &Path) -> Option<(Owner, Content)> {
    let (file, owner, content) = open(path)?;
    // Its owner holds the lock for its whole life; other processes never hold it for longer than this check.
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        let _ = std::fs::remove_file(path);
        return None;
    }
    Some((owner, content))
}

/// Opens a file of the ledger, of any owner: the file, its owner, its content.
fn open(path: &Path) -> Option<(File, Owner, Content)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let status = rustix::fs::fstat(&file).ok()?;
    let size = u64::try_from(status.st_size).ok()?;
    let plain = rustix::fs::FileType::from_raw_mode(status.st_mode) == rustix::fs::FileType::RegularFile;
    if !plain || size > MAX_FILE_BYTES {
        return None;
    }
    let mut text = Vec::new();
    (&mut file).take(MAX_FILE_BYTES).read_to_end(&mut text).ok()?;
    let owner = Owner { uid: status.st_uid, since: u64::try_from(status.st_ctime).unwrap_or_default() };
    Some((file, owner, serde_json::from_slice(&text).ok()?))
}

/// Creates a world-writable directory, or checks that it is one.
fn create_world_writable(directory: &Path) -> rustix::io::Result<()> {
    match DirBuilder::new().mode(0o755).create(directory) {
        Ok(()) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = rustix::fs::open(directory, flags, Mode::empty())?;
            rustix::fs::fchmod(&made, Mode::from_raw_mode(0o1777))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let status = rustix::fs::lstat(directory)?;
            if rustix::fs::FileType::from_raw_mode(status.st_mode) != rustix::fs::FileType::Directory {
                return Err(Errno::NOTDIR);
            }
            let all =
                rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
            rustix::fs::accessat(rustix::fs::CWD, directory, all, rustix::fs::AtFlags::EACCESS)
        }
        Err(error) => Err(errno_of(&error)),
    }
}

/// Nanoseconds since boot, by a clock that cannot be set.
fn nanos_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

#[cfg(test)]
mod tests;
