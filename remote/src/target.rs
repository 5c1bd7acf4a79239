//! Which kind of place a target is, and how it is reached. Nothing else knows the kinds.

use std::path::{Path, PathBuf};

use jobc_schema::BackendName;
use jobc_schema::target::{SlurmContainer, Target};
use jobc_sys::error::Result;
use jobc_sys::program_path;

use crate::host::{Host, Program, SshSettings};
use crate::kubernetes::{self, ClusterConfig, Uses};
use crate::machine::{self, Machine};
use crate::place::RemotePlace;
use crate::slurm;

/// What reaching a target needs of this host.
#[derive(Clone, Debug)]
pub struct Caller<'a> {
    /// The directory of the targets file, the base of relative paths in it.
    pub directory: &'a Path,
    /// This program, which a host may get a copy of.
    pub program: Program,
    /// Gets delays that the user should know of.
    pub notice: fn(&str),
}

/// The backend for which jobs are submitted to a target; none if jobs cannot be.
pub fn backend(target: &Target) -> Option<BackendName> {
    let of_clusters = [BackendName::Kubernetes, BackendName::Slurm];
    let of_cluster = of_clusters.into_iter().find(|backend| target.backends.contains(backend));
    of_cluster.or(target.is_machine().then_some(BackendName::Oci))
}

/// The backends whose files are sent to a target.
pub fn backends(target: &Target) -> Vec<BackendName> {
    let main = backend(target);
    let with_bundles = main == Some(BackendName::Slurm) && target.backends.contains(&BackendName::Oci);
    main.into_iter().chain(with_bundles.then_some(BackendName::Oci)).collect()
}

/// Whether a target specifies its cluster; a kubeconfig is found without it.
pub fn is_reachable(target: &Target) -> bool {
    match backend(target) {
        // Slurm's commands are on login nodes, of which this host may be one.
        Some(BackendName::Slurm) => target.ssh.is_some() || program_path::find("sbatch").is_some(),
        backend => backend.is_some(),
    }
}

/// Whether the images of a job go with it, instead of being pulled from a registry by the place.
pub fn brings_images(target: &Target) -> bool {
    let container = target.slurm.as_ref().map(|settings| settings.container).unwrap_or_default();
    match backend(target) {
        Some(BackendName::Slurm) => container == SlurmContainer::Jobc,
        backend => backend == Some(BackendName::Oci),
    }
}

/// The configuration of a cluster of Kubernetes.
///
/// # Errors
///
/// The kubeconfig is missing or cannot be used.
pub fn cluster_config(target: &Target, directory: &Path) -> Result<ClusterConfig> {
    let settings = target.kubernetes.clone().unwrap_or_default();
    let uses = Uses::of(&settings);
    let access = kubernetes::Access {
        kubeconfig: settings.kubeconfig.map(|text| path(&text, directory)),
        context: settings.context,
        namespace: settings.namespace,
    };
    let mut config = ClusterConfig::load(&access)?;
    config.uses = uses;
    Ok(config)
}

/// A path of a setting: `~/` is the home directory, and relative paths begin in the directory of the targets file.
fn path(text: &str, directory: &Path) -> PathBuf {
    match text.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None => directory.join(text),
    }
}

/// The place of a target's settings. Nothing is sent yet.
///
/// # Errors
///
/// A program or a file that is needed to reach it is missing.
pub fn open(target: &Target, caller: Caller<'_>) -> Result<Box<dyn RemotePlace>> {
    let Caller { directory, program, notice } = caller;
    Ok(match backend(target) {
        Some(BackendName::Oci) => {
            let access = machine::Access { ssh: target.ssh.clone().unwrap_or_default(), program };
            Box::new(Machine::new(access, notice)?)
        }
        Some(BackendName::Slurm) => {
            let settings = target.slurm.clone().unwrap_or_default();
            let host = match &target.ssh {
                // Slurm's commands are often only on the PATH of login shells.
                Some(ssh) => Host::ssh(SshSettings {
                    host: ssh.host.clone(),
                    jump: ssh.jump.clone(),
                    login_profile: true,
                })?,
                None => Host::local(),
            };
            Box::new(slurm::Cluster::new(slurm::Access::new(host, settings, program), notice))
        }
        _ => Box::new(kubernetes::Cluster::new(cluster_config(target, directory)?, notice)),
    })
}
