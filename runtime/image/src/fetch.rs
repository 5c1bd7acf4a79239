//! The interface of a registry client.

use crate::manifest::Descriptor;
use crate::platform::Platform;
use crate::progress::ProgressFn;
use crate::store::Store;
use jobc_schema::reference::Reference;
use jobc_sys::error::Result;

/// Pulls an image from a registry into a store.
pub trait Fetch: Sync {
    /// Resolves a name at the registry, and fetches what the store lacks of it under that name; returns an index or a
    /// manifest.
    ///
    /// Callers that accept the store's content check it first ([`Store::is_complete`]).
    ///
    /// # Errors
    ///
    /// The registry does not have it, refuses it, or sends something else; the network; no space left.
    fn fetch(
        &self,
        store: &Store,
        reference: &Reference,
        platform: &Platform,
        on_progress: ProgressFn<'_>,
    ) -> Result<Descriptor>;
}
