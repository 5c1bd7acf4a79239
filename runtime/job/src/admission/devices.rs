//! Locks on devices: the process that holds one has the device, regardless of the ledger.
//!
//! The ledger decides under a lock that is skipped if another process holds it for too long, and a file in a
//! world-writable directory has what its writer chooses. A device must belong to one job even so: next to the claims
//! there is an empty file for each device, which is never removed and whose lock (flock(2)) its job holds while it
//! runs. Jobs that share a card hold the lock together.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use jobc_gpu::DeviceId;
use jobc_gpu::lease::{GpuLease, Sharing};
use jobc_sys::error::Error;

/// The devices of a job, held.
#[derive(Debug, Default)]
pub(super) struct DeviceLocks {
    _locked: Vec<OwnedFd>,
}

/// Why devices are not held.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another job has this one.
    Taken(DeviceId),
    /// The lock cannot be taken.
    Failed(Error),
}

/// Takes the locks of all devices of a job, or of none.
pub(super) fn lock_devices(directory: &Path, leased: &GpuLease) -> Result<DeviceLocks, LockError> {
    let mut locked = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for slot in &leased.slots {
        let shared = slot.slice.as_ref().is_some_and(|slice| slice.by != Sharing::Mig);
        let card = DeviceId { mig: None, ..slot.device };
        // A job with a MIG instance shares its card with those that have others, so that no job gets the whole card.
        for (device, shared) in [(card, shared || slot.device.mig.is_some()), (slot.device, shared)] {
            if seen.insert(device) {
                locked.push(lock(&directory.join(lock_file_name(device)), device, shared)?);
            }
        }
    }
    Ok(DeviceLocks { _locked: locked })
}

fn lock(path: &Path, device: DeviceId, shared: bool) -> Result<OwnedFd, LockError> {
    let file = open(path).map_err(|errno| {
        let error = Error::system(format!("open `{}`", path.display()), errno);
        LockError::Failed(error.help("this is the lock file of a GPU: make it readable by all users"))
    })?;
    let how =
        if shared { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
    loop {
        return match rustix::fs::flock(&file, how) {
            Ok(()) => Ok(file),
            Err(Errno::WOULDBLOCK) => Err(LockError::Taken(device)),
            Err(Errno::INTR) => continue,
            Err(errno) => Err(LockError::Failed(Error::system(format!("lock `{}`", path.display()), errno))),
        };
    }
}

/// Opens a lock file, or creates it so that other users can open it. A lock needs no write permission, and in a
/// directory like this the kernel prevents creating over the file of another user (`fs.protected_regular`).
pub(super) fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    for _ in 0..8 {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let making = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(path, making, Mode::from_raw_mode(0o644)) {
            Ok(file) => {
                // Others must be able to read it regardless of our umask.
                rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644))?;
                return Ok(file);
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::NOENT)
}

/// The name of a device's lock: `gpu-nvidia-0`, `gpu-nvidia-0-1`.
fn lock_file_name(device: DeviceId) -> PathBuf {
    let mig = device.mig.map(|mig| format!("-{mig}")).unwrap_or_default();
    format!("gpu-{}{mig}", card_name(device)).into()
}

/// The name of a card in names of files: `nvidia-0`.
pub(super) fn card_name(card: DeviceId) -> String {
    format!("{}-{}", card.vendor.as_str(), card.gpu)
}
