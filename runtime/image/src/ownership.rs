//! The owners of the files of unpacked layers: they depend on the user who runs containers, so each has separate
//! directories.

use std::path::PathBuf;

use crate::store::Store;
use jobc_schema::digest::Digest;
use jobc_sys::error::Result;
use jobc_sys::host::needs_user_namespace;
use jobc_sys::id_map::IdMaps;

/// Whose the files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The owners of the image: root unpacks.
    Root,
    /// All belong to the user, who has no other ids.
    SingleUser,
    /// The owners of the image, mapped to the ids that the user was granted: unpacking needs a user namespace.
    Mapped(IdMaps),
}

impl Ownership {
    /// Whose the files are that this process unpacks.
    pub fn of_current_user() -> Result<Self> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        if !needs_user_namespace() {
            return Ok(Self::Root);
        }
        let maps = IdMaps::rootless(uid.as_raw(), gid.as_raw())?;
        Ok(if maps.single().is_some() { Self::SingleUser } else { Self::Mapped(maps) })
    }

    /// Where the layers are; ids that are granted again get a new place.
    pub(crate) fn directory(&self, store: &Store) -> PathBuf {
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
