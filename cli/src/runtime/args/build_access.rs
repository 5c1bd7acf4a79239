//! What a build may reach: networks and SSH agents.

use clap::{Args as ClapArgs, ValueEnum};

/// The options of `jobc image build` about networks and agents.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct BuildAccessArgs {
    /// Network of `RUN` instructions that name none
    #[arg(long, value_enum, value_name = "NETWORK", default_value_t = BuildNetworkArg::Default)]
    pub network: BuildNetworkArg,
    /// Allow something that Dockerfiles may not do otherwise (repeatable)
    #[arg(long, value_enum, value_name = "ENTITLEMENT")]
    pub allow: Vec<EntitlementArg>,
    /// SSH agent for `RUN --mount=type=ssh` and git by SSH (repeatable)
    ///
    /// Without a path, the agent is the one of `SSH_AUTH_SOCK`. A path is that of an agent's socket, or of a private
    /// key, which a temporary agent gets.
    #[arg(long, value_name = "ID[=SOCKET|KEY[,KEY...]]")]
    pub ssh: Vec<String>,
}

/// A network of a build's commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuildNetworkArg {
    /// A network namespace of its own, with an uplink by pasta or slirp4netns
    #[default]
    Default,
    /// A network namespace with loopback only
    None,
    /// The host's network, with all services that listen on this host
    Host,
}

/// Something that must be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EntitlementArg {
    /// `RUN --network=host`
    #[value(name = "network.host")]
    NetworkHost,
}
