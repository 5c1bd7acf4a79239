//! Files and directories of the host that tasks with slices of cards have.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use oci_spec::runtime::Mount;

use jobc_sys::error::{Result, file_error as failed};

/// A bind of a file or a directory of the host.
pub(super) fn bind_mount(source: &Path, destination: &Path, read_only: bool) -> Mount {
    let mut options = vec!["rbind", "rprivate", "nosuid", "nodev"];
    options.extend(read_only.then_some("ro"));
    let mut mount = Mount::default();
    mount
        .set_destination(destination.to_owned())
        .set_typ(Some("bind".to_owned()))
        .set_source(Some(source.to_owned()))
        .set_options(Some(options.into_iter().map(str::to_owned).collect()));
    mount
}

/// A directory that tasks of any user can write to, below one that only this user can enter.
pub(super) fn create_shared_directory(directory: &Path) -> Result<PathBuf> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.and_then(|()| std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o1777)))
        .map_err(|error| failed("create the directory", directory, &error))?;
    Ok(directory.to_owned())
}
