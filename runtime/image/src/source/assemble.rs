//! An image that is created here from layers.

use crate::config::Config;
use crate::manifest::{Descriptor, Manifest, media};
use crate::platform::Platform;
use crate::store::Store;
use jobc_schema::digest::Digest;
use jobc_sys::error::Result;

/// Adds an image of layers, for the platform of this host; each layer with its diff id.
pub(super) fn add_image(
    store: &Store,
    mut config: Config,
    layers: Vec<(Descriptor, Digest)>,
) -> Result<Descriptor> {
    let here = Platform::here();
    (config.os, config.architecture) = (here.os, here.architecture);
    let (layers, diff_ids): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
    config.rootfs.diff_ids = diff_ids;
    let config = store.put_json(&config, media::CONFIG)?;
    store.put_json(&Manifest::new(config, layers), media::MANIFEST)
}
