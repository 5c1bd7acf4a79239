//! Images: a store on this machine, what can be brought into it, and root file systems made of it.
//!
//! The store is an OCI image layout (image-spec, image-layout.md), so other tools read it as it is. Registries are not known
//! here: whoever has a client for them gives a [`Fetch`].

pub mod build;
pub mod config;
pub mod digest;
pub mod dockerfile;
pub mod manifest;
pub mod pack;
pub mod platform;
pub mod progress;
pub mod reference;
pub mod source;
pub mod store;
pub mod unpack;

use crate::error::Result;

pub use config::Config;
pub use digest::{Digest, Hasher};
pub use manifest::{Descriptor, Index, Manifest};
pub use platform::Platform;
pub use progress::{Progress, Told};
pub use reference::Reference;
pub use store::{Image, Store};

/// Whoever can bring an image from a registry into a store.
pub trait Fetch: Sync {
    /// Brings an image into the store under its name, unless it is whole there, and returns what the name stands for: an index
    /// or a manifest.
    ///
    /// # Errors
    ///
    /// The registry does not have it, refuses it, or sends something else; the network; no space left.
    fn fetch(
        &self,
        store: &Store,
        reference: &Reference,
        platform: &Platform,
        told: Told<'_>,
    ) -> Result<Descriptor>;
}
