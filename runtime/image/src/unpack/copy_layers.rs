//! Layers copied into one directory: a root without an overlay.

use std::fs;
use std::path::{Path, PathBuf};

use jobc_container::root::layers::Layers;
use jobc_sys::error::{Error, Kind, Result};

/// Copies directories, the lowest first, by this process's own view of owners.
pub(super) fn copy_here(directories: &[PathBuf], to: &Path) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::new(Kind::System, format!("cannot copy the layers to `{}`", to.display())).because(error)
    };
    fs::create_dir(to).map_err(failed)?;
    let copied =
        Layers::open(directories).map_err(std::io::Error::from).and_then(|layers| layers.copy_to(to));
    if copied.is_err() {
        // The first error is the one to report.
        let _ = jobc_container::remove::remove(to);
    }
    copied.map_err(failed)
}
