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
pub mod save;
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
    /// Asks the registry what a name stands for now, and brings that into the store under the name, as far as it is not there;
    /// returns it: an index or a manifest.
    ///
    /// Who is content with what the store has looks there first ([`Store::is_whole`]).
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
