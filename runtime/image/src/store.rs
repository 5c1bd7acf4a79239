//! The image store on this host: an OCI image layout (image-spec, image-layout.md) with additional directories.
//!
//! ```text
//! oci-layout, index.json, blobs/sha256/…   the layout
//! partial/     incomplete blobs
//! unpacked/    layers as directories
//! cache/       results of build steps, what sources hold, and locks of work that one process does for others
//! held/        content in use, one locked file per user of the store
//! mounted/     mounted images, one file per mount
//! mounts/      directories that they are mounted on
//! users, lock  locks: every process in the store shares the first; the second is for index.json
//! ```
//!
//! A blob gets its name after its content is on the disk and its digest is verified, and index.json is replaced
//! atomically, so a process that exits at any moment leaves a consistent store, and at most something for
//! [`Store::collect`].

mod collect;
mod directory;
mod document;
mod exclusive;
mod image;
mod index;
mod mounted;
mod pin;
mod shared;
mod verify;
mod writer;

pub use collect::CollectionReport;
pub use directory::Store;
pub(crate) use document::MAX_INDEX_DEPTH;
pub use document::{MAX_DOCUMENT_SIZE, MAX_LAYERS, parse, sorted_json};
pub use exclusive::ExclusiveLock;
pub use image::Image;
pub use index::NamedImage;
pub use mounted::MountRecord;
pub use pin::ContentPin;
pub use shared::{SHARED_STORES_FILE, SHARED_STORES_VARIABLE, SharedStore, listed_shared_stores};
pub use verify::Finding;
pub use writer::Writer;

#[cfg(test)]
mod tests;
