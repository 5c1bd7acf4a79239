//! The parts of an ID-mapped mount that a step needs; [`crate::id_mapped`] creates it.

use jobc_sys::id_map::IdMaps;
use jobc_sys::syscall::Fd;

/// How a bind mount's owners are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMappedMount {
    /// The owner of the map.
    pub ids: IdMapSource,
    /// Whether the mounts below it are mapped too.
    pub recursive: bool,
    /// `MS_*`, what every mount of the host is made in the container.
    pub(crate) propagation: u64,
    /// The detached copy, mapped already; -1 until [`crate::id_mapped::create_mounts`] has made it.
    pub(crate) tree: Fd,
}

/// Where a map comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdMapSource {
    /// From config.json: `inside` in the file system is seen as `outside` on the host.
    Maps(IdMaps),
    /// From an existing user namespace.
    Namespace(Fd),
}

impl IdMappedMount {
    /// One whose copy is not created yet.
    pub fn new(ids: IdMapSource, recursive: bool, propagation: u64) -> Self {
        Self { ids, recursive, propagation, tree: -1 }
    }
}
