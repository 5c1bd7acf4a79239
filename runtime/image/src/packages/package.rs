//! Installed packages and their database entries.

use jobc_schema::digest::Digest;

/// The package manager that a package is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackageKind {
    /// dpkg.
    Debian,
    /// apk.
    Alpine,
    /// pip, or another installer that writes `.dist-info` or `.egg-info`.
    Python,
    /// conda.
    Conda,
}

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// Its package manager.
    pub kind: PackageKind,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The file of the image that lists it.
    pub path: String,
    /// The layer that has this file.
    pub layer: Digest,
    /// Other qualifiers, as named in package URLs: `arch`, `build`, `channel`, `subdir`.
    pub qualifiers: Vec<(&'static str, String)>,
    /// Its license, as its metadata has it.
    pub license: Option<License>,
}

/// The license of a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum License {
    /// A name.
    Name(String),
    /// An SPDX expression.
    Expression(String),
}

/// A package's database entry.
pub(super) struct Listed {
    pub(super) kind: PackageKind,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) qualifiers: Vec<(&'static str, String)>,
    pub(super) license: Option<License>,
}
