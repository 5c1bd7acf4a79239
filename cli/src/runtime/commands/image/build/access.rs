//! What a build may reach, from the options of the command line.

use jobc_image::build::access::Access;
use jobc_image::dockerfile::Network;

use super::agents::Agents;
use super::host::BuildHost;
use crate::runtime::args::build_access::{BuildAccessArgs, BuildNetworkArg, EntitlementArg};

/// The access of a build.
pub(super) fn access<'a>(args: &BuildAccessArgs, agents: &Agents, host: &'a BuildHost) -> Access<'a> {
    Access {
        network: match args.network {
            BuildNetworkArg::Default => Network::Default,
            BuildNetworkArg::None => Network::None,
            BuildNetworkArg::Host => Network::Host,
        },
        host_network: args.allow.contains(&EntitlementArg::NetworkHost),
        agents: agents.sockets.clone(),
        ..host.access()
    }
}
