//! Networks of image builds: a job's bridge and uplink, with the commands of the build as tasks.

use std::net::Ipv4Addr;
use std::path::Path;

use jobc_container::rootless::Caller;
use jobc_image::build::access::{BuildNetwork, NetworkNamespace, Networks};
use jobc_sys::error::Result;

use super::helper::NetworkHelper;
use super::messages::{SetupRequest, UplinkRequest};
use super::{address, bridge, files};

/// Creates networks for the commands of image builds.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildNetworks;

/// The network of one build.
struct Made {
    helper: NetworkHelper,
    resolver: Option<Ipv4Addr>,
    no_uplink: Option<String>,
}

impl Networks for BuildNetworks {
    fn create(&self, directory: &Path, commands: usize) -> Result<Box<dyn BuildNetwork>> {
        let commands = commands.min(bridge::MAX_TASKS);
        let uplink = UplinkRequest { place: files::create_bridge_file(directory)?, leads_to_host: false };
        let order = SetupRequest {
            tasks: commands,
            addresses: Some(address::choose_addresses()?),
            uplink,
            users: None,
            forwards: vec![],
            shares_ipc: false,
        };
        let (helper, made) = NetworkHelper::start(order, Caller::IsRoot)?;
        Ok(Box::new(Made { helper, resolver: made.resolver, no_uplink: made.no_uplink }))
    }
}

impl BuildNetwork for Made {
    fn namespace(&self, command: usize) -> Result<NetworkNamespace> {
        let held = self.helper.proc_path();
        let number = self.helper.namespace(command)?;
        Ok(NetworkNamespace {
            network: held.join(format!("fd/{number}")),
            user: self.helper.in_user_namespace.then(|| held.join("ns/user")),
        })
    }

    fn resolver(&self) -> Option<Ipv4Addr> {
        self.resolver
    }

    fn no_uplink(&self) -> Option<&str> {
        self.no_uplink.as_deref()
    }
}
