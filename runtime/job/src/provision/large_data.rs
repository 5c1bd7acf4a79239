//! Where large things lie.

use std::path::PathBuf;

use crate::directory::Directory;

/// The directory of a job's record where large things lie while it runs.
pub(super) const FETCHED_DIRECTORY: &str = "fetched";

/// The directory for large data of a running job: its state directory or, if that is in memory, one on the disk of its
/// record.
pub(super) fn large_data_directory(directory: &Directory) -> PathBuf {
    if jobc_container::secret_directory::is_in_memory(&directory.state) {
        directory.record.join(FETCHED_DIRECTORY)
    } else {
        directory.state.join(FETCHED_DIRECTORY)
    }
}
