//! The access of a build beyond its context: networks, the user's agents, other hosts.
//!
//! All of it comes from the caller: this crate opens no connection to another host. Without it, commands have a network
//! namespace with nothing but loopback, and `ADD` of a URL is an error.

use std::fs::File;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use jobc_dockerfile::Network;
use jobc_sys::error::{Error, Result};
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};

/// The access of a build.
#[derive(Clone, Default)]
pub struct Access<'a> {
    /// The network of commands that name none.
    pub network: Network,
    /// Whether `RUN --network=host` is allowed (BuildKit's entitlement `network.host`).
    pub host_network: bool,
    /// The maker of networks for commands.
    pub networks: Option<&'a dyn Networks>,
    /// The client for `ADD` of URLs.
    pub downloads: Option<&'a dyn Download>,
    /// The certificates that commands, downloads and git trust; only those of the image or the host if `None`.
    pub certificates: Option<&'a Certificates>,
    /// Sockets of SSH agents by their ids, for `RUN --mount=type=ssh`; `default` also for git by SSH.
    pub agents: IndexMap<String, PathBuf>,
}

/// Certificates of CAs that a build trusts, in PEM format. They are in memory, and not in the image.
#[derive(Debug)]
pub struct Certificates {
    pem: Vec<u8>,
    file: File,
}

impl Certificates {
    /// Takes the text of a file with certificates.
    ///
    /// # Errors
    ///
    /// No memory is left.
    pub fn new(pem: Vec<u8>) -> Result<Self> {
        let failed = |errno| Error::system("keep certificates in memory", errno);
        let file = rustix::fs::memfd_create("certificates", MemfdFlags::CLOEXEC).map_err(failed)?;
        let mut file = File::from(file);
        file.write_all(&pem).map_err(|error| {
            failed(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::NOMEM))
        })?;
        Ok(Self { pem, file })
    }

    /// The text.
    pub(super) fn pem(&self) -> &[u8] {
        &self.pem
    }

    /// A path of the file for other programs of this user, as long as this value exists.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }
}

/// Creates networks for the commands of builds.
pub trait Networks: Sync {
    /// Creates a network for a build with this many concurrent commands. It may use `directory`, which it creates.
    ///
    /// # Errors
    ///
    /// The host or the user's privileges do not allow it. In that case nothing is left behind. A missing uplink is not
    /// an error.
    fn create(&self, directory: &Path, commands: usize) -> Result<Box<dyn BuildNetwork>>;
}

/// The network of a build. Dropping it removes it.
pub trait BuildNetwork: Send + Sync {
    /// A network namespace for a command by its number: one that no command had before.
    fn namespace(&self, command: usize) -> Result<NetworkNamespace>;

    /// The name server, if the network has an uplink.
    fn resolver(&self) -> Option<Ipv4Addr>;

    /// Why it has no uplink, if so.
    fn no_uplink(&self) -> Option<&str>;
}

/// A network namespace, by its file below /proc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkNamespace {
    /// The namespace.
    pub network: PathBuf,
    /// The user namespace that owns it, which its members must join; absent for root.
    pub user: Option<PathBuf>,
}

/// The largest file that `ADD` downloads, in bytes.
pub const MAX_DOWNLOAD_BYTES: u64 = 64 << 30;

/// A client for files on other hosts.
pub trait Download: Sync {
    /// Downloads a file to the beginning of an empty one; `None` if it has not changed since it had the validators.
    ///
    /// # Errors
    ///
    /// The server does not have it or refuses it; it is larger than the limit, or shorter than announced; the network;
    /// the disk; `stopped`.
    fn download(
        &self,
        request: &DownloadRequest<'_>,
        output: &mut File,
        stopped: &AtomicBool,
    ) -> Result<Option<Validators>>;
}

/// The file to download.
#[derive(Clone, Copy, Debug)]
pub struct DownloadRequest<'a> {
    /// An `http` or `https` URL.
    pub url: &'a str,
    /// Its validators from an earlier download.
    pub known: Option<&'a Validators>,
    /// Maximum size in bytes.
    pub limit: u64,
}

/// Headers of a response, as the server sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
    /// `Content-Disposition`, which may have the name of the file.
    pub disposition: Option<String>,
}

/// A URL as messages show it: without user and password.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("https://u:p@h/a@b"), "https://h/a@b");
        assert_eq!(without_password("https://h/a@b"), "https://h/a@b");
        assert_eq!(without_password("git@h:r.git"), "git@h:r.git");
    }
}
