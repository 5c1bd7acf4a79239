//! Removes what a job leaves when it has ended, or when its supervisor was killed.

use crate::folder::Folder;
use jobc_container::container;
use jobc_container::remove::remove;
use jobc_container::state::Id;
use jobc_sys::error::Result;

/// The file of a job's record that keeps some bytes of the disk for its end.
pub(crate) const RESERVE: &str = "reserve";

/// Deletes every container of a job; returns what could not be.
pub(crate) fn remove_containers(folder: &Folder) -> Vec<String> {
    let store = folder.containers();
    let names = std::fs::read_dir(store.root()).into_iter().flatten().flatten();
    let ids = names.filter_map(|entry| Id::new(entry.file_name().to_str()?).ok());
    ids.filter_map(|id| container::delete(&store, &id, true).err()).map(|error| error.to_string()).collect()
}

/// Removes a job's state folder. The control group above those of its tasks went with the last of them.
pub(crate) fn remove_state(folder: &Folder) -> Result<()> {
    match remove(&folder.state) {
        Err(error) if folder.state.exists() => Err(error),
        _ => Ok(()),
    }
}

/// Frees what was kept for the end: on a full disk, how a job ended is what must be written still.
pub(crate) fn release_reserve(folder: &Folder) {
    // Where it is not there, it was never needed.
    let _ = std::fs::remove_file(folder.record.join(RESERVE));
}
