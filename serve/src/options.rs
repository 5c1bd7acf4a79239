//! The options of a server.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_sys::error::{Result, file_error};

use crate::address::Listen;
use crate::tokens::Access;

/// A further token with an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// What it permits.
    pub access: Access,
    /// How long it lasts.
    pub lasts: Duration,
}

/// A proxy that names the user of each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// The header with the name.
    pub header: String,
    /// The user whom the proxy runs as.
    pub uid: u32,
}

/// Where the server keeps its own files.
#[derive(Clone, Debug)]
pub struct Directories {
    /// Sessions and the audit file.
    pub state: Utf8PathBuf,
    /// Uploads.
    pub cache: Utf8PathBuf,
}

/// The options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: Listen,
    /// Names besides those that always mean this host.
    pub hosts: Vec<String>,
    /// Origins of other sites that may send requests.
    pub origins: Vec<String>,
    /// The directories that requests may name; the first one is the base of job files.
    pub roots: Vec<Utf8PathBuf>,
    /// Further tokens.
    pub shares: Vec<Share>,
    /// The files of a certificate and its key.
    pub tls: Option<(Utf8PathBuf, Utf8PathBuf)>,
    /// A proxy that names users.
    pub proxy: Option<Proxy>,
    /// Users, as the proxy names them, who see the jobs of all.
    pub operators: Vec<String>,
    /// The audit file, if not the one of the state directory.
    pub audit: Option<Utf8PathBuf>,
    /// A directory with the page instead of the embedded one.
    pub page: Option<Utf8PathBuf>,
    /// Whether to open a browser.
    pub open: bool,
    /// Where the server keeps its own files.
    pub directories: Directories,
    /// The version of this program.
    pub version: &'static str,
}

/// Creates a directory of this user alone.
pub(crate) fn create_private(directory: &Utf8Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| file_error("create", directory.as_std_path(), &error))
}
