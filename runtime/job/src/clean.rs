//! Removes what a job leaves when it has ended, or when its supervisor was killed.

use crate::directory::Directory;
use jobc_container::container;
use jobc_container::remove::remove;
use jobc_container::state::Id;
use jobc_sys::error::Result;

/// The file of a job's record that keeps some bytes of the disk for its end.
pub(crate) const RESERVE_FILE: &str = "reserve";

/// Deletes every container of a job; returns what could not be.
pub(crate) fn remove_containers(directory: &Directory) -> Vec<String> {
    let store = directory.containers();
    let names = std::fs::read_dir(store.root()).into_iter().flatten().flatten();
    let ids = names.filter_map(|entry| Id::new(entry.file_name().to_str()?).ok());
    ids.filter_map(|id| container::delete(&store, &id, true).err()).map(|error| error.to_string()).collect()
}

/// Removes a job's state directory. The cgroup above those of its tasks went with the last of them.
pub(crate) fn remove_state(directory: &Directory) -> Result<()> {
    match remove(&directory.state) {
        Err(error) if directory.state.exists() => Err(error),
        _ => Ok(()),
    }
}

/// Frees what was kept for the end: on a full disk, how a job ended is what must be written still.
pub(crate) fn release_reserve(directory: &Directory) {
    // Where it does not exist, it was never needed.
    let _ = std::fs::remove_file(directory.record.join(RESERVE_FILE));
}
