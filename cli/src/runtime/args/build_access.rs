//! What a build may reach: networks and SSH agents.

use clap::{Args as ClapArgs, ValueEnum};

/// The options of `jobc image build` about networks and agents.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct BuildAccessArgs {
    /// Network of `RUN` instructions without `--network`
    #[arg(long, value_enum, value_name = "NETWORK", default_value_t = BuildNetworkArg::Default)]
    pub network: BuildNetworkArg,
    /// Allow Dockerfiles to use a privileged feature (repeatable)
    #[arg(long, value_enum, value_name = "ENTITLEMENT")]
    pub allow: Vec<EntitlementArg>,
    /// SSH agent for `RUN --mount=type=ssh` and git over SSH (repeatable)
    ///
    /// Without a path, the agent of `SSH_AUTH_SOCK` is used. A path names the socket of an agent, or a private key for
    /// a temporary agent.
    #[arg(long, value_name = "ID[=SOCKET|KEY[,KEY...]]")]
    pub ssh: Vec<String>,
}

/// The network of a build's commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuildNetworkArg {
    /// A separate network namespace, with an uplink through pasta or slirp4netns
    #[default]
    Default,
    /// A network namespace with loopback only
    None,
    /// The host's network, with all services that listen on this host
    Host,
}

/// A feature that must be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EntitlementArg {
    /// `RUN --network=host`
    #[value(name = "network.host")]
    NetworkHost,
}
