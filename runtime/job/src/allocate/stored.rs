//! The root of a bundle whose files are not in it: layers of an image store, or a directory that many containers share.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use super::image::Image;
use jobc_container::bundle::Bundle;
use jobc_container::root::Root;
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::id_map::IdMaps;

/// The initial directories of a container. Changes go to a separate layer in memory.
#[derive(Debug)]
pub struct StoredRoot {
    /// The directories, lowest first.
    pub layers: Vec<PathBuf>,
    /// The settings of the image, if it has any.
    pub image: Option<Image>,
    /// Whether the container gets copies, since no overlay can be mounted here.
    pub copied: bool,
}

impl StoredRoot {
    /// A directory that other containers use at the same time.
    ///
    /// # Errors
    ///
    /// It belongs to a user who does not exist in a container of this one.
    pub fn shared_directory(directory: PathBuf, copied: bool) -> Result<Self> {
        refuse_foreign(&directory)?;
        Ok(Self { layers: vec![directory], image: None, copied })
    }

    /// The root of a container that has the directory `state_dir`.
    pub(super) fn root(&self, bundle: &Bundle, state_dir: &Path) -> Result<Root> {
        if self.copied {
            let copy = state_dir.join("rootfs");
            jobc_image::unpack::copy(&self.layers, &copy)?;
            return Ok(Root::Directory(copy));
        }
        let layers = self.layers.iter().enumerate();
        let layers = layers.map(|(number, layer)| mountable(layer, number, state_dir));
        Root::layered(layers.collect::<Result<_>>()?, bundle)?.with_state_dir(state_dir)
    }
}

/// Refuses a directory that an unprivileged user's container could not change, not even in a layer above it: the owner
/// of its files is not mapped there (user_namespaces(7)), and every task gets additional files.
pub(crate) fn refuse_foreign(root: &Path) -> Result<()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if uid.is_root() {
        return Ok(());
    }
    let owner = std::fs::metadata(root).at_path("stat", root)?.uid();
    // The root of every container of this user.
    if owner == uid.as_raw() {
        return Ok(());
    }
    let maps = IdMaps::rootless(uid.as_raw(), gid.as_raw())?;
    let known = |extent: &jobc_sys::id_map::Extent| {
        (extent.outside..extent.outside.saturating_add(extent.length)).contains(&owner)
    };
    if maps.users.extents().iter().any(known) {
        return Ok(());
    }
    let message = format!(
        "the root `{}` belongs to user {owner}, which is not mapped in your containers",
        root.display()
    );
    Err(Error::new(Kind::Unenforceable, message).help(
        "use an archive, or a directory that you unpacked yourself, so that jobc can add files for the tasks",
    ))
}

/// A path for an overlay's lower layer: fsconfig(2) takes 255 bytes, and `:` separates layers.
fn mountable(layer: &Path, number: usize, state_dir: &Path) -> Result<PathBuf> {
    let text = layer.as_os_str().as_encoded_bytes();
    if text.len() < 250 && !text.iter().any(|byte| b":,\\".contains(byte)) {
        return Ok(layer.to_owned());
    }
    let link = state_dir.join(format!("layer-{number}"));
    symlink(layer, &link).at_path("link", &link)?;
    Ok(link)
}
