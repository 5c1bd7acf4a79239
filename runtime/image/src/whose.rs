//! Whose the files of unpacked layers are: that depends on who runs containers, so each has folders of their own.

use std::path::PathBuf;

use crate::store::Store;
use jobc_schema::digest::Digest;
use jobc_sys::error::Result;
use jobc_sys::id_map::IdMaps;

/// Whose the files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// As the image says: root unpacks.
    Root,
    /// All the user's, who has no other ids.
    One,
    /// As the image says, by the ids that the user was granted: a user namespace is needed to unpack.
    Ids(IdMaps),
}

impl Whose {
    /// Whose the files are that this process unpacks.
    pub fn mine() -> Result<Self> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        if uid.is_root() {
            return Ok(Self::Root);
        }
        let maps = IdMaps::rootless(uid.as_raw(), gid.as_raw())?;
        Ok(if maps.single().is_some() { Self::One } else { Self::Ids(maps) })
    }

    /// Where the layers are; ids that are granted anew get a new place.
    pub(crate) fn folder(&self, store: &Store) -> PathBuf {
        let name = match self {
            Self::Root => "root".to_owned(),
            Self::One => "user".to_owned(),
            Self::Ids(maps) => {
                let text = format!("{}\n{}", maps.users.text(), maps.groups.text());
                format!("ids-{}", Digest::of(text.as_bytes()).short())
            }
        };
        store.root().join("unpacked").join(name)
    }
}
