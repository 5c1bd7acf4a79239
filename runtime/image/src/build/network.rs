//! The networks of a build's commands: made for the first command that needs one, shared by the others.
//!
//! Each command has a network namespace that no other had. So neither the host's loopback addresses nor its abstract
//! sockets (unix(7)) can be reached, except by `--network=host`, which the user must allow.

use std::sync::{Mutex, OnceLock, PoisonError};

use jobc_dockerfile::{Build, Kind, Network, Refusal, Run, Span};
use jobc_sys::error::Result;

use super::access::{Access, BuildNetwork, NetworkNamespace};
use super::work::WorkDirectory;

/// The network of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum CommandNetwork {
    /// The host's.
    Host,
    /// A new one, with loopback only.
    #[default]
    None,
    /// One that exists.
    Joined(NetworkNamespace),
}

/// The network that a build's commands share, once there is one.
#[derive(Default)]
pub(super) struct SharedNetwork {
    made: OnceLock<Box<dyn BuildNetwork>>,
    turn: Mutex<()>,
    free: Mutex<Vec<usize>>,
}

/// A place on the network, for the time of a command.
pub(super) struct NetworkLease<'a> {
    shared: &'a SharedNetwork,
    number: usize,
    network: &'a dyn BuildNetwork,
}

impl SharedNetwork {
    /// A place on the network, which is created for the first one; also whether it was created now. `None` if there is
    /// no maker of networks.
    pub(super) fn lease(
        &self,
        access: &Access<'_>,
        work: &WorkDirectory,
        commands: usize,
    ) -> Result<Option<(NetworkLease<'_>, bool)>> {
        let Some(networks) = access.networks else { return Ok(None) };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = self.made.get().is_none();
        if is_new {
            let made = networks.create(&work.network(), commands)?;
            *self.free.lock().unwrap_or_else(PoisonError::into_inner) = (0..commands).collect();
            let _ = self.made.set(made);
        }
        let number = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let leased = self.made.get().zip(number);
        Ok(leased.map(|(network, number)| {
            (NetworkLease { shared: self, number, network: network.as_ref() }, is_new)
        }))
    }
}

impl NetworkLease<'_> {
    /// The namespace for the command.
    pub(super) fn namespace(&self) -> Result<NetworkNamespace> {
        self.network.namespace(self.number)
    }

    /// /etc/resolv.conf on this network: the host's search list and options, with the uplink's name server.
    pub(super) fn resolv_conf(&self, host: &str) -> String {
        let Some(resolver) = self.network.resolver() else {
            return "# The build's network has no uplink, so there is no name server.\n".to_owned();
        };
        let kept =
            |line: &&str| matches!(line.split_whitespace().next(), Some("search" | "domain" | "options"));
        let kept: String = host.lines().filter(kept).map(|line| format!("{line}\n")).collect();
        format!("{kept}nameserver {resolver}\n")
    }

    /// Why it has no uplink, if so.
    pub(super) fn no_uplink(&self) -> Option<&str> {
        self.network.no_uplink()
    }
}

impl Drop for NetworkLease<'_> {
    fn drop(&mut self) {
        self.shared.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}

/// The network of a command, with the build's default filled in.
pub(super) fn effective(run: &Run, access: &Access<'_>) -> Network {
    if run.network == Network::Default { access.network } else { run.network }
}

/// Refuses commands on the host's network, unless that is allowed.
pub(super) fn check(build: &Build, access: &Access<'_>) -> Vec<Refusal> {
    let instructions = build.stages.iter().flat_map(|stage| &stage.instructions);
    instructions
        .filter_map(|instruction| match &instruction.kind {
            Kind::Run(run) => check_command(run, &instruction.span, access).err(),
            _ => None,
        })
        .collect()
}

/// The network of one command.
pub(super) fn check_command(run: &Run, span: &Span, access: &Access<'_>) -> std::result::Result<(), Refusal> {
    // Choosing it as the default implies the permission.
    if run.network != Network::Host || access.host_network || access.network == Network::Host {
        return Ok(());
    }
    let refusal = Refusal::new(span.clone(), "`RUN --network=host` is not allowed");
    Err(refusal.help("allow it with `jobc image build --allow network.host`: the command reaches every service of this host"))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::path::Path;

    use super::*;
    use crate::build::access::Networks;

    struct Fake(Option<Ipv4Addr>);

    impl Networks for Fake {
        fn create(&self, _: &Path, _: usize) -> Result<Box<dyn BuildNetwork>> {
            Ok(Box::new(Self(self.0)))
        }
    }

    impl BuildNetwork for Fake {
        fn namespace(&self, command: usize) -> Result<NetworkNamespace> {
            Ok(NetworkNamespace { network: format!("/proc/1/fd/{command}").into(), user: None })
        }

        fn resolver(&self) -> Option<Ipv4Addr> {
            self.0
        }

        fn no_uplink(&self) -> Option<&str> {
            self.0.is_none().then_some("no pasta")
        }
    }

    #[test]
    fn commands_at_the_same_time_have_different_namespaces() {
        let directory = tempfile::tempdir().unwrap();
        let store = crate::Store::open(directory.path()).unwrap();
        let work = WorkDirectory::create(&store).unwrap();
        let maker = Fake(Some(Ipv4Addr::new(10, 202, 0, 3)));
        let access = Access { networks: Some(&maker), ..Access::default() };
        let shared = SharedNetwork::default();
        let (first, made) = shared.lease(&access, &work, 2).unwrap().unwrap();
        let (second, again) = shared.lease(&access, &work, 2).unwrap().unwrap();
        assert!(made && !again);
        assert_ne!(first.namespace().unwrap(), second.namespace().unwrap());
        assert_eq!(
            first.resolv_conf("search a\nnameserver 127.0.0.53\n"),
            "search a\nnameserver 10.202.0.3\n"
        );
        drop(first);
        assert!(shared.lease(&access, &work, 2).unwrap().is_some());
        assert!(shared.lease(&Access::default(), &work, 2).unwrap().is_none());
    }

    #[test]
    fn the_hosts_network_must_be_allowed() {
        let text = "FROM scratch\nRUN --network=host a\nRUN --network=none b\nRUN c\n";
        let options = jobc_dockerfile::Options {
            args: &[],
            target: None,
            platform: "linux/amd64",
            build_platform: "linux/amd64",
        };
        let build = jobc_dockerfile::read(text.as_bytes(), &options).unwrap();
        let count = |access: &Access<'_>| check(&build, access).len();
        assert_eq!(count(&Access::default()), 1);
        assert_eq!(count(&Access { host_network: true, ..Access::default() }), 0);
        assert_eq!(count(&Access { network: Network::Host, ..Access::default() }), 0);
    }
}
