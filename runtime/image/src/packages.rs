//! The packages that are installed in an image, as the databases of package managers list them.
//!
//! They are read from the archives of the layers: nothing is unpacked, mounted or executed. Debian's and Alpine's
//! databases, and the metadata of Python and conda packages are understood. RPM's databases are binary formats
//! (`SQLite`, ndb, Berkeley DB) and are only named.

mod alpine;
mod conda;
mod databases;
mod debian;
mod os_release;
mod package;
mod python;

use std::sync::atomic::AtomicBool;

use jobc_sys::error::Result;

use crate::store::{Image, Store};

pub use os_release::Distribution;
pub use package::{License, Package, PackageKind};

/// The packages of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The distribution, if the image names it.
    pub distribution: Option<Distribution>,
    /// The packages, sorted by kind, name, version and path.
    pub packages: Vec<Package>,
    /// Databases that were found but could not be read, as sentences.
    pub gaps: Vec<String>,
}

/// Reads the packages of an image.
///
/// # Errors
///
/// A layer is missing, is corrupt or too large; `stopped` has become true.
pub fn read(store: &Store, image: &Image, stopped: &AtomicBool) -> Result<Inventory> {
    Ok(inventory(&databases::read(store, image, stopped)?))
}

fn inventory(files: &databases::Files) -> Inventory {
    let mut inventory = Inventory::default();
    for (path, file) in files {
        let path = String::from_utf8_lossy(path);
        let text = String::from_utf8_lossy(&file.content);
        let found = match databases::Database::of(&path) {
            Some(databases::Database::Debian) => debian::packages(&text),
            Some(databases::Database::Alpine) => alpine::packages(&text),
            Some(databases::Database::Python) => python::package(&text).into_iter().collect(),
            Some(databases::Database::Conda) => conda::package(&text).into_iter().collect(),
            Some(databases::Database::OsRelease) => {
                // /etc/os-release comes first, and is what the administrator of the image wrote.
                inventory.distribution = inventory.distribution.or_else(|| os_release::distribution(&text));
                continue;
            }
            Some(databases::Database::Rpm) => {
                inventory.gaps.push(format!("RPM packages of `{path}` are not listed"));
                continue;
            }
            None => continue,
        };
        if file.is_cut {
            inventory.gaps.push(format!("`{path}` is too large; only its beginning was read"));
        }
        inventory.packages.extend(found.into_iter().map(|found| Package {
            kind: found.kind,
            name: found.name,
            version: found.version,
            path: path.clone().into_owned(),
            layer: file.layer.clone(),
            qualifiers: found.qualifiers,
            license: found.license,
        }));
    }
    inventory.packages.sort();
    inventory.packages.dedup();
    inventory
}

#[cfg(test)]
mod tests;
