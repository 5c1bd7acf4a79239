//! What a build may reach, from the options of the command line.

use jobc_image::build::access::Access;
use jobc_image::dockerfile::Network;
use jobc_job::network::BuildNetworks;

use super::agents::Agents;
use crate::runtime::args::build_access::{BuildAccessArgs, BuildNetworkArg, EntitlementArg};
use crate::runtime::registries;

/// Creates networks for commands.
const NETWORKS: BuildNetworks = BuildNetworks;

/// The access of a build.
pub(super) fn access(args: &BuildAccessArgs, agents: &Agents) -> Access<'static> {
    Access {
        network: match args.network {
            BuildNetworkArg::Default => Network::Default,
            BuildNetworkArg::None => Network::None,
            BuildNetworkArg::Host => Network::Host,
        },
        host_network: args.allow.contains(&EntitlementArg::NetworkHost),
        agents: agents.sockets.clone(),
        ..default_access()
    }
}

/// The default access of a build: its own network, and downloads.
pub(crate) fn default_access() -> Access<'static> {
    Access { networks: Some(&NETWORKS), downloads: registries::downloads(), ..Access::default() }
}
