//! Whether a layer is whole, and whether it will still be after a power cut.
//!
//! To wait for the disk would take longer than unpacking, and a layer can be unpacked again. So it is only noted in which boot
//! it was unpacked: in the same one, what was written is there, on the disk or in memory. In another one it may be damaged.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long after unpacking nobody waits for the disk: by then the kernel has begun to write by itself (proc_sys_vm(5),
/// `dirty_expire_centisecs`).
const MINUTE: Duration = Duration::from_mins(1);

/// Whether a folder is there and whole.
pub(super) fn is_whole(folder: &Path) -> bool {
    match fs::read(folder.join("boot")) {
        Ok(boot) => current().is_some_and(|current| current == boot),
        Err(error) if error.kind() == io::ErrorKind::NotFound => folder.is_dir(),
        Err(_) => false,
    }
}

/// Notes the present boot in a folder that has no name yet.
pub(super) fn note(folder: &Path) -> io::Result<()> {
    match current() {
        Some(boot) => fs::write(folder.join("boot"), boot),
        // Where boots cannot be told apart the disk is waited for.
        None => rustix::fs::syncfs(File::open(folder)?).map_err(io::Error::from),
    }
}

/// Sees that whole folders are on the disk, if that was not seen and they are old enough. What cannot be done now is done at
/// another time.
pub(super) fn settle<'a>(folders: impl Iterator<Item = &'a Path>) {
    let unsettled = |folder: &&Path| {
        let noted = fs::metadata(folder.join("boot")).and_then(|data| data.modified());
        noted.is_ok_and(|noted| noted.elapsed().is_ok_and(|age| age > MINUTE))
    };
    let folders: Vec<&Path> = folders.filter(unsettled).collect();
    let Some(first) = folders.first() else { return };
    // They are all on one file system.
    let synced = File::open(first).is_ok_and(|first| rustix::fs::syncfs(first).is_ok());
    if synced {
        for folder in folders {
            let _ = fs::remove_file(folder.join("boot"));
        }
    }
}

fn current() -> Option<Vec<u8>> {
    fs::read("/proc/sys/kernel/random/boot_id").ok().filter(|boot| !boot.is_empty())
}
