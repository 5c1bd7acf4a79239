//! The store of images on this machine: an OCI image layout (image-spec, image-layout.md) with folders of ours beside it.
//!
//! ```text
//! oci-layout, index.json, blobs/sha256/…   the layout
//! partial/     blobs that are not whole yet
//! unpacked/    layers as folders
//! cache/       what builds have made
//! held/        what is in use, one locked file a user
//! users, lock  locks: whoever works here shares the first; the second is for index.json
//! ```
//!
//! A blob gets its name when its content is on the disk and has the digest that the name says, and index.json is replaced as
//! a whole, so a process that ends at any moment leaves a store that is whole, and at most something for [`Store::collect`].

mod collect;
mod directory;
mod document;
mod hold;
mod image;
mod index;
mod verify;
mod writer;

pub use collect::Collected;
pub use directory::Store;
pub use document::{LARGEST_DOCUMENT, sorted_json};
pub use hold::Hold;
pub use image::Image;
pub use index::Named;
pub use verify::Finding;
pub use writer::Writer;

#[cfg(test)]
mod tests;
