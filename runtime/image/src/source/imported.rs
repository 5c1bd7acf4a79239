//! What came in, and what it came from.

use crate::manifest::Descriptor;
use jobc_schema::reference::Reference;

/// An imported image, and its name in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedImage {
    /// Its names; none if the source has none.
    pub names: Vec<Reference>,
    /// Its manifest or index.
    pub descriptor: Descriptor,
    /// What it came from.
    pub kind: SourceKind,
}

/// What an image came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// An OCI image layout.
    Layout,
    /// What `docker save` writes.
    DockerArchive,
    /// A root file system.
    RootFs,
    /// Nothing.
    Scratch,
}

impl SourceKind {
    /// In words, with its article.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Layout => "an OCI layout",
            Self::DockerArchive => "a Docker archive",
            Self::RootFs => "a root file system",
            Self::Scratch => "an empty image",
        }
    }
}
