//! The settings that concern jobs and images on this host.

use std::path::PathBuf;

use jobc_sys::error::{Error, Kind, Result};

use crate::platform::directories::home;
use crate::settings::current;
use crate::settings::names::{ALLOW_UNENFORCED, IMAGE_ROOT, REGISTRIES, Setting};
use crate::settings::paths::user_directory;

/// Whether jobs run with limits that cannot be enforced, without the option `--allow-unenforced`; nothing if the user
/// has not set it.
///
/// # Errors
///
/// A value of the environment that is neither true nor false.
pub(crate) fn allows_unenforced() -> Result<Option<bool>> {
    let value = current().value(&ALLOW_UNENFORCED);
    let value = value.map_err(|error| Error::new(Kind::Config, error.message()).help(error.help()))?;
    Ok(value.map(|value| value.text == "true"))
}

/// The directory of the image store, if it is not the default.
pub(crate) fn image_root() -> Option<PathBuf> {
    path(&IMAGE_ROOT)
}

/// The file with the user's settings of registries, and whether it must exist.
pub(crate) fn registries() -> Option<(PathBuf, bool)> {
    let default = || Some((user_directory()?.join("registries.yaml"), false));
    path(&REGISTRIES).map(|path| (path, true)).or_else(default)
}

/// A path, with `~/` at its start replaced.
fn path(setting: &Setting) -> Option<PathBuf> {
    let text = current().value(setting).ok()??.text;
    let Some(rest) = text.strip_prefix("~/") else { return Some(text.into()) };
    Some(home()?.join(rest).into())
}
