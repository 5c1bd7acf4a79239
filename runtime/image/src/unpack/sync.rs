//! Whether a layer is whole, and whether it will still be after a power cut.
//!
//! To wait for the disk would take longer than unpacking, and a layer can be unpacked again. So it is only noted in
//! which boot it was unpacked: in the same boot, written data is there, on disk or in memory. In another one it may be
//! damaged.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long after unpacking no sync is done: by then the kernel has started to write back (proc_sys_vm(5),
/// `dirty_expire_centisecs`).
const WRITEBACK_TIME: Duration = Duration::from_mins(1);

/// Whether a directory exists and is complete.
pub(super) fn is_complete(directory: &Path) -> bool {
    match fs::read(directory.join("boot")) {
        Ok(boot) => boot_id().is_some_and(|current| current == boot),
        Err(error) if error.kind() == io::ErrorKind::NotFound => directory.is_dir(),
        Err(_) => false,
    }
}

/// Notes the present boot in a directory that has no name yet.
pub(super) fn record_boot(directory: &Path) -> io::Result<()> {
    match boot_id() {
        Some(boot) => fs::write(directory.join("boot"), boot),
        // If boots cannot be distinguished, the layer is synced to the disk.
        None => rustix::fs::syncfs(File::open(directory)?).map_err(io::Error::from),
    }
}

/// Syncs complete directories to the disk, if this was not done and they are old enough. A sync that fails now is done
/// at another time.
pub(super) fn sync_layers<'a>(directories: impl Iterator<Item = &'a Path>) {
    let unsettled = |directory: &&Path| {
        let noted = fs::metadata(directory.join("boot")).and_then(|data| data.modified());
        noted.is_ok_and(|noted| noted.elapsed().is_ok_and(|age| age > WRITEBACK_TIME))
    };
    let directories: Vec<&Path> = directories.filter(unsettled).collect();
    let Some(first) = directories.first() else { return };
    // They are all on one file system.
    let synced = File::open(first).is_ok_and(|first| rustix::fs::syncfs(first).is_ok());
    if synced {
        for directory in directories {
            let _ = fs::remove_file(directory.join("boot"));
        }
    }
}

fn boot_id() -> Option<Vec<u8>> {
    fs::read("/proc/sys/kernel/random/boot_id").ok().filter(|boot| !boot.is_empty())
}
