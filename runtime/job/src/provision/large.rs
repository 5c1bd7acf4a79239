//! Where large things lie.

use std::path::PathBuf;

use crate::folder::Folder;

/// The folder of a job's record where large things lie while it runs.
pub(super) const FETCHED: &str = "fetched";

/// Where large things of a job lie while it runs: in its state folder, or where that is in memory, on the disk that has its
/// record.
pub(super) fn large(folder: &Folder) -> PathBuf {
    if jobc_container::secret_directory::is_in_memory(&folder.state) {
        folder.record.join(FETCHED)
    } else {
        folder.state.join(FETCHED)
    }
}
