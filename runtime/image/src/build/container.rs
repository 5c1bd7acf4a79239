//! The container of a `RUN`: its config.json.
//!
//! container.json has what the usual engines give a build: the namespaces, capabilities, masked paths and seccomp
//! filter of the tasks that `jobc build` writes, which a test compares. Unlike those, it allows gaining privileges, so
//! that `sudo` works in a Dockerfile as elsewhere.

use std::path::{Path, PathBuf};

use oci_spec::runtime::{
    LinuxMemory, LinuxNamespace, LinuxNamespaceType, Mount, PosixRlimit, PosixRlimitBuilder, Spec,
};

use super::extras::Rlimit;
use super::network::CommandNetwork;
use jobc_container::config::Config;
use jobc_container::rootless;
use jobc_container::user::Account;
use jobc_sys::error::{Error, Kind, Result};

/// The configuration that all such containers share.
const TEMPLATE: &str = include_str!("container.json");

/// The settings of a command of a build.
#[derive(Clone, Debug)]
pub(super) struct CommandConfig {
    /// The arguments, the program first.
    pub(super) arguments: Vec<String>,
    /// Its variables, `NAME=value`.
    pub(super) environment: Vec<String>,
    /// The directory it starts in.
    pub(super) cwd: String,
    /// Its user.
    pub(super) account: Account,
    /// Its network.
    pub(super) network: CommandNetwork,
    /// The mounts, outer ones first.
    pub(super) mounts: Vec<CommandMount>,
    /// The size of /dev/shm in bytes; 64 MiB where absent.
    pub(super) shm_bytes: Option<u64>,
    /// Its resource limits.
    pub(super) rlimits: Vec<Rlimit>,
    /// Its memory in bytes.
    pub(super) memory_bytes: Option<u64>,
}

/// Something mounted for the time of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandMount {
    /// Where: an absolute path of the container.
    pub(super) target: String,
    /// What.
    pub(super) source: MountSource,
    /// Whether it cannot be written to.
    pub(super) read_only: bool,
}

/// The source of the mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MountSource {
    /// A file or directory of the host.
    Path(PathBuf),
    /// A tmpfs of at most this many bytes.
    Memory(Option<u64>),
}

/// The configuration of a command's container; `devices` is whether a cgroup can deny it devices.
pub(super) fn spec(setting: &CommandConfig, root: &Path, devices: bool) -> Result<Spec> {
    let mut spec = Config::read(TEMPLATE.as_bytes())?.spec;
    let mut of_spec = spec.root().clone().unwrap_or_default();
    of_spec.set_path(root.to_owned());
    spec.set_root(Some(of_spec));
    let mut process = spec.process().clone().unwrap_or_default();
    let mut user = process.user().clone();
    let Account { uid, gid, additional } = &setting.account;
    user.set_uid(*uid).set_gid(*gid);
    if !additional.is_empty() {
        user.set_additional_gids(Some(additional.clone()));
    }
    process.set_user(user).set_args(Some(setting.arguments.clone())).set_cwd(PathBuf::from(&setting.cwd));
    process.set_env(Some(setting.environment.clone()));
    if let Some(mut capabilities) = process.capabilities().clone() {
        if !devices {
            let mut bounding = capabilities.bounding().clone().unwrap_or_default();
            bounding.remove(&oci_spec::runtime::Capability::Mknod);
            capabilities
                .set_bounding(Some(bounding.clone()))
                .set_permitted(Some(bounding.clone()))
                .set_effective(Some(bounding));
        }
        if *uid != 0 {
            // As the kernel does for a program that a user executes: privileges of root come only by set-user-id
            // programs.
            capabilities.set_permitted(Some([].into())).set_effective(Some([].into()));
        }
        process.set_capabilities(Some(capabilities));
    }
    if !setting.rlimits.is_empty() {
        let limits = setting.rlimits.iter().map(Rlimit::of_spec);
        process.set_rlimits(Some(limits.collect::<Result<_>>()?));
    }
    spec.set_process(Some(process));
    if let Some(linux) = spec.linux_mut() {
        if setting.network != CommandNetwork::Host {
            let mut network = LinuxNamespace::default();
            network.set_typ(LinuxNamespaceType::Network);
            if let CommandNetwork::Joined(joined) = &setting.network {
                network.set_path(Some(joined.network.clone()));
            }
            linux.namespaces_mut().get_or_insert_default().push(network);
        }
        if !devices {
            linux.set_resources(None);
        }
        if let Some(bytes) = setting.memory_bytes {
            if !devices {
                return Err(Error::new(
                    Kind::Unenforceable,
                    "the memory of a build's commands cannot be limited",
                )
                .help("build as root, or leave out `--memory`"));
            }
            let mut memory = LinuxMemory::default();
            memory.set_limit(Some(i64::try_from(bytes).unwrap_or(i64::MAX)));
            memory.set_swap(memory.limit());
            linux.resources_mut().get_or_insert_default().set_memory(Some(memory));
        }
    }
    if let Some(bytes) = setting.shm_bytes {
        for mount in spec.mounts_mut().iter_mut().flatten() {
            if mount.destination() == Path::new("/dev/shm") {
                let mut options = mount.options().clone().unwrap_or_default();
                options.retain(|option| !option.starts_with("size="));
                options.push(format!("size={bytes}"));
                mount.set_options(Some(options));
            }
        }
    }
    spec.mounts_mut().get_or_insert_default().extend(setting.mounts.iter().map(CommandMount::mount));
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if jobc_sys::host::needs_user_namespace() {
        rootless::adapt(&mut spec, uid.as_raw(), gid.as_raw(), rootless::Caller::IsRoot)?;
    } else if jobc_sys::host::in_user_namespace() {
        rootless::adapt_in_user_namespace(&mut spec);
    }
    if let CommandNetwork::Joined(joined) = &setting.network
        && let Some(user) = &joined.user
    {
        join_user_namespace(&mut spec, user)?;
    }
    Ok(spec)
}

/// Replaces the user namespace of an unprivileged user's container by the one that owns its network. The ids are the
/// same.
fn join_user_namespace(spec: &mut Spec, path: &Path) -> Result<()> {
    let namespaces = spec.linux_mut().as_mut().and_then(|linux| linux.namespaces_mut().as_mut());
    let user = namespaces
        .and_then(|list| list.iter_mut().find(|namespace| namespace.typ() == LinuxNamespaceType::User))
        .ok_or_else(|| Error::new(Kind::State, "a command on a network without a user namespace"))?;
    user.set_path(Some(path.to_owned()));
    Ok(())
}

impl Rlimit {
    fn of_spec(&self) -> Result<PosixRlimit> {
        let limit = PosixRlimitBuilder::default().typ(self.kind).soft(self.soft).hard(self.hard);
        limit.build().map_err(|error| Error::new(Kind::State, error.to_string()))
    }
}

impl CommandMount {
    fn mount(&self) -> Mount {
        let mut mount = Mount::default();
        let access = if self.read_only { "ro" } else { "rw" };
        mount.set_destination(PathBuf::from(&self.target));
        let mut options = vec!["nosuid".to_owned(), "nodev".to_owned(), access.to_owned()];
        match &self.source {
            MountSource::Path(path) => {
                mount.set_typ(Some("bind".to_owned())).set_source(Some(path.clone()));
                options.insert(0, "bind".to_owned());
            }
            MountSource::Memory(size) => {
                mount.set_typ(Some("tmpfs".to_owned())).set_source(Some(PathBuf::from("tmpfs")));
                options.push("mode=1777".to_owned());
                options.extend(size.map(|size| format!("size={size}")));
            }
        }
        mount.set_options(Some(options));
        mount
    }
}

#[cfg(test)]
mod tests;
