//! Where a node of Slurm unpacks images, once for all steps of a user.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use jobc_sys::error::{AtPath as _, Error, Kind, Result};

/// File systems whose files are memory: tmpfs and ramfs (statfs(2)).
const MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The store of this node, if this is a step of Slurm.
///
/// # Errors
///
/// It cannot be made, or is another user's.
pub(super) fn of_step() -> Result<Option<PathBuf>> {
    if std::env::var_os("SLURM_JOB_ID").is_none() {
        return Ok(None);
    }
    let parent = std::env::var_os("TMPDIR").map_or_else(|| usual(is_memory), PathBuf::from);
    let uid = rustix::process::geteuid().as_raw();
    let path = parent.join(format!("jobc-{uid}"));
    DirBuilder::new().recursive(true).mode(0o700).create(&path).at_path("create the directory", &path)?;
    let status = std::fs::symlink_metadata(&path).at_path("read", &path)?;
    if !status.is_dir() || status.uid() != uid {
        let message = format!("the directory `{}` belongs to another user", path.display());
        return Err(Error::new(Kind::State, message).help("write another one as `slurm.store` of the target"));
    }
    Ok(Some(path.join("images")))
}

/// /tmp, unless its files count as memory of the job and those of /var/tmp do not.
fn usual(is_memory: impl Fn(&Path) -> bool) -> PathBuf {
    let [usual, other] = ["/tmp", "/var/tmp"].map(Path::new);
    let is_better = is_memory(usual) && other.is_dir() && !is_memory(other);
    if is_better { other } else { usual }.to_owned()
}

fn is_memory(path: &Path) -> bool {
    rustix::fs::statfs(path)
        .is_ok_and(|status| u64::try_from(status.f_type).is_ok_and(|kind| MEMORY.contains(&kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_not_unpacked_into_the_memory_of_a_job() {
        assert_eq!(usual(|_| false), Path::new("/tmp"));
        assert_eq!(usual(|path| path == Path::new("/tmp")), Path::new("/var/tmp"));
        assert_eq!(usual(|_| true), Path::new("/tmp"));
    }
}
