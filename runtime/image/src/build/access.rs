//! What a build may reach beyond its context: networks, the agents of who builds, other hosts.
//!
//! All of it comes from the caller: this crate opens no connection to another host. Without it, commands have a network
//! namespace with nothing but loopback, and `ADD` of a URL is an error.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use jobc_dockerfile::Network;
use jobc_sys::error::Result;

use super::download::Download;

/// What a build may reach.
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
    /// Sockets of SSH agents by their ids, for `RUN --mount=type=ssh`; `default` also for git by SSH.
    pub agents: IndexMap<String, PathBuf>,
}

/// Whoever can make networks for the commands of builds.
pub trait Networks: Sync {
    /// Makes a network for a build, with room for so many commands at a time. It may use `directory`, which it makes.
    ///
    /// # Errors
    ///
    /// The host or the user's privileges do not allow it. Nothing is left then. That it has no uplink is not an error.
    fn create(&self, directory: &Path, commands: usize) -> Result<Box<dyn BuildNetwork>>;
}

/// The network of a build. Dropping it removes it.
pub trait BuildNetwork: Send + Sync {
    /// A network namespace for a command by its number: one that no command had before.
    fn namespace(&self, command: usize) -> Result<NetworkNamespace>;

    /// The name server, if the network has an uplink.
    fn resolver(&self) -> Option<Ipv4Addr>;

    /// Why it has no uplink.
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
