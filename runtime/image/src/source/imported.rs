//! The result of an import, and its source.

use crate::manifest::Descriptor;
use jobc_schema::reference::Reference;

/// An imported image, and its name in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedImage {
    /// Its names; none if the source has none.
    pub names: Vec<Reference>,
    /// Its manifest or index.
    pub descriptor: Descriptor,
    /// Its source.
    pub kind: SourceKind,
}

/// The format of an image's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// An OCI image layout.
    Layout,
    /// The format of `docker save`.
    DockerArchive,
    /// A root file system.
    RootFs,
    /// Nothing.
    Scratch,
}

impl SourceKind {
    /// Its name in a message, with its article.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Layout => "an OCI layout",
            Self::DockerArchive => "a Docker archive",
            Self::RootFs => "a root file system",
            Self::Scratch => "an empty image",
        }
    }
}
