//! The owners of the files of unpacked layers: they depend on the user who runs containers, so each has separate
//! directories.

use std::path::PathBuf;

use crate::store::{SharedStore, Store};
use jobc_schema::digest::Digest;
use jobc_sys::error::Result;
use jobc_sys::host::needs_user_namespace;
use jobc_sys::id_map::IdMaps;

/// The directories that have unpacked layers of one kind of owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LayerDirectories {
    /// Where layers are unpacked.
    pub(crate) own: PathBuf,
    /// Those of shared stores, which are only read.
    pub(crate) shared: Vec<PathBuf>,
}

/// The owners of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The owners of the image: root unpacks.
    Root,
    /// All belong to the user, who has no subordinate IDs.
    SingleUser,
    /// The owners of the image, mapped to the ids that the user was granted: unpacking needs a user namespace.
    Mapped(IdMaps),
}

impl Ownership {
    /// The owners of the files that this process unpacks.
    pub fn of_current_user() -> Result<Self> {
        Self::of_current_user_as(None)
    }

    /// The same for containers in which this user is another one than root.
    pub fn of_current_user_as(inside: Option<(u32, u32)>) -> Result<Self> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        if !needs_user_namespace() {
            return Ok(Self::Root);
        }
        let maps = match inside {
            None => IdMaps::rootless(uid, gid)?,
            Some(inside) => IdMaps::rootless_as(uid, gid, inside)?,
        };
        Ok(if maps.single().is_some() { Self::SingleUser } else { Self::Mapped(maps) })
    }

    /// Where unpacked layers are.
    pub(crate) fn layer_directories(&self, store: &Store) -> LayerDirectories {
        // A shared layer belongs to the owners of the image as root unpacked it. In a user namespace they are other
        // ids, and a container could change nothing of it.
        let shared = match self {
            Self::Root => store.shared().iter().filter_map(SharedStore::layers_of_root).collect(),
            Self::SingleUser | Self::Mapped(_) => Vec::new(),
        };
        LayerDirectories { own: self.directory(store), shared }
    }

    /// Where the layers of a store are; ids that are granted again get a new place.
    fn directory(&self, store: &Store) -> PathBuf {
        let name = match self {
            Self::Root => "root".to_owned(),
            Self::SingleUser => "user".to_owned(),
            Self::Mapped(maps) => {
                let text = format!("{}\n{}", maps.users.text(), maps.groups.text());
                format!("ids-{}", Digest::of(text.as_bytes()).short())
            }
        };
        store.root().join("unpacked").join(name)
    }
}
