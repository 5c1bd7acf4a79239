//! The container's root: a folder, an archive, or the machine's own files.
use std::path::PathBuf;
/// Stand-in.
#[derive(Debug)]
pub enum Root {
    /// f
    Folder(PathBuf),
    /// o
    Overlay {
        /// l
        lower: PathBuf,
        /// s
        upper_size: Option<u64>,
        /// o
        on: PathBuf,
        /// b
        binds: Vec<PathBuf>,
    },
}
