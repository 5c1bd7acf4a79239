//! Targets by name: their settings in the targets file, and the cluster behind them.

use camino::{Utf8Path, Utf8PathBuf};
use indexmap::IndexMap;
use jobc_compiler::built_in_targets::built_in_targets;
use jobc_compiler::diagnostic::{DocumentId, Sink};
use jobc_compiler::source::{Source, Sources};
use jobc_compiler::{parse, suggest, validate};
use jobc_remote::kubernetes::{self, ClusterConfig, Uses};
use jobc_remote::machine::{self, Machine};
use jobc_remote::{Place, host, slurm};
use jobc_schema::BackendName;
use jobc_schema::target::{SlurmContainer, Target};
use jobc_sys::error::{Error, Kind};
use jobc_sys::program_path;

use super::handle::failure;
use crate::args::FormatArg;
use crate::input::{InputError, absolute, find_targets, read};
use crate::platform::directories::expand_home;
use crate::report;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::message::container_warning;
use crate::terminal;

/// The targets of a targets file, or the built-in ones.
pub(super) struct TargetTable {
    targets: IndexMap<String, Target>,
    /// The directory of the file.
    directory: Option<Utf8PathBuf>,
}

impl TargetTable {
    /// Reads the file of an option, or the one that the current directory belongs to.
    pub(super) fn read(path: Option<&Utf8Path>) -> Result<Self> {
        let wrong = |InputError(why)| Failure::usage_error(Error::new(Kind::Config, why));
        let path = match path {
            Some(path) => Some(path.to_owned()),
            None => absolute(Utf8Path::new(".")).ok().as_deref().and_then(find_targets),
        };
        let Some(path) = path else {
            let built_in = built_in_targets().into_iter().map(|(name, target)| (name.to_owned(), target));
            return Ok(Self { targets: built_in.collect(), directory: None });
        };
        let mut sources = Sources::new();
        let id = sources.add(Source::new(path.clone(), read(&path).map_err(wrong)?));
        let mut sink = Sink::new();
        let document = parse::parse(&sources, id, &mut sink);
        let targets = document.as_ref().and_then(|document| validate::targets(document, &mut sink));
        if let Some(document) = &document {
            sink.locate(DocumentId::Targets, document, &sources);
        }
        let Some(targets) = targets else {
            report::findings(&sources, sink, FormatArg::Text, true);
            let error = Error::new(Kind::Config, format!("the targets file `{path}` has errors"));
            return Err(Failure::usage_error(error));
        };
        let directory = path.parent().map(Utf8Path::to_owned);
        Ok(Self { targets: targets.targets, directory })
    }

    /// The targets with their settings.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Target)> {
        self.targets.iter().map(|(name, target)| (name.as_str(), target))
    }

    /// The names of the targets that jobs can be submitted to.
    pub(super) fn clusters(&self) -> Vec<&str> {
        self.all().filter(|(_, target)| is_reachable(target)).map(|(name, _)| name).collect()
    }

    /// The settings of a target that is a cluster.
    fn cluster_target(&self, name: &str) -> Result<&Target> {
        let known = || suggest::list(self.clusters());
        let Some(target) = self.targets.get(name) else {
            let near = suggest::nearest(name, self.targets.keys().map(String::as_str));
            let help =
                near.map_or_else(|| format!("known: {}", known()), |near| format!("did you mean `{near}`?"));
            let error = Error::new(Kind::Config, format!("unknown target `{name}`"));
            return Err(Failure::usage_error(error.help(help)));
        };
        if backend(target).is_none() {
            return Err(not_a_cluster(name, target));
        }
        Ok(target)
    }

    /// The place that a target is.
    pub(super) fn place(&self, name: &str) -> Result<Box<dyn Place>> {
        connect(self.cluster_target(name)?, self.directory.as_deref())
    }

    /// The backend for which jobs are submitted to a target.
    pub(super) fn backend(&self, name: &str) -> Option<BackendName> {
        self.targets.get(name).and_then(backend)
    }

    /// The namespace of a target, without asking its cluster; none if neither it nor a kubeconfig names one.
    pub(super) fn namespace(&self, name: &str) -> Result<String> {
        let target = self.cluster_target(name)?;
        let named = target.kubernetes.as_ref().and_then(|settings| settings.namespace.clone());
        named.map_or_else(|| Ok(config(target, self.directory.as_deref())?.namespace), Ok)
    }

    /// What the jobs of a target use of its cluster.
    pub(super) fn uses(&self, name: &str) -> Result<Uses> {
        let target = self.cluster_target(name)?;
        Ok(target.kubernetes.as_ref().map(Uses::of).unwrap_or_default())
    }
}

/// The error of a target that jobs are not submitted to.
pub(super) fn not_a_cluster(name: &str, target: &Target) -> Failure {
    let error = Error::new(Kind::Unsupported, format!("jobs cannot be submitted to the target `{name}`"));
    Failure::usage_error(if target.backends.contains(&BackendName::Openpai) {
        error.help(format!(
            "`jobc build --target {name}` writes `openpai/job.yaml`; submit that file in OpenPAI's web portal"
        ))
    } else {
        error.help("it needs the backend `kubernetes` or `slurm`, or `ssh`")
    })
}

/// Whether a target specifies its cluster; a kubeconfig is found without it.
pub(super) fn is_reachable(target: &Target) -> bool {
    match backend(target) {
        // Slurm's commands are on login nodes, of which this host may be one.
        Some(BackendName::Slurm) => target.ssh.is_some() || program_path::find("sbatch").is_some(),
        backend => backend.is_some(),
    }
}

/// The backend for which jobs are submitted to a target; none if it is neither a cluster nor a machine.
pub(super) fn backend(target: &Target) -> Option<BackendName> {
    let of_clusters = [BackendName::Kubernetes, BackendName::Slurm];
    let of_cluster = of_clusters.into_iter().find(|backend| target.backends.contains(backend));
    of_cluster.or(target.is_machine().then_some(BackendName::Oci))
}

/// How to reach a machine.
fn machine_access(target: &Target) -> machine::Access {
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let version = format!("jobc {}", env!("CARGO_PKG_VERSION"));
    machine::Access { ssh: target.ssh.clone().unwrap_or_default(), program, version }
}

/// The backends whose files are sent to a target.
pub(super) fn backends(target: &Target) -> Vec<BackendName> {
    let main = backend(target);
    let with_bundles = main == Some(BackendName::Slurm) && target.backends.contains(&BackendName::Oci);
    main.into_iter().chain(with_bundles.then_some(BackendName::Oci)).collect()
}

/// Whether tasks on a cluster of Slurm run their containers by jobc, with images that a submission brings.
pub(super) fn runs_bundles(target: &Target) -> bool {
    let container = target.slurm.as_ref().map(|settings| settings.container).unwrap_or_default();
    backend(target) == Some(BackendName::Slurm) && container == SlurmContainer::Jobc
}

/// A path of a setting: `~/` is the home directory, and relative paths begin in the directory of the targets file.
fn path(text: &str, directory: Option<&Utf8Path>) -> std::path::PathBuf {
    // An absolute path replaces the directory.
    directory.unwrap_or(Utf8Path::new(".")).join(expand_home(text).unwrap_or_else(|| text.into())).into()
}

/// How to reach a cluster of Kubernetes.
fn config(target: &Target, directory: Option<&Utf8Path>) -> Result<ClusterConfig> {
    let settings = target.kubernetes.clone().unwrap_or_default();
    let uses = Uses::of(&settings);
    let access = kubernetes::Access {
        kubeconfig: settings.kubeconfig.map(|text| path(&text, directory)),
        context: settings.context,
        namespace: settings.namespace,
    };
    let mut config = ClusterConfig::load(&access).map_err(failure)?;
    config.uses = uses;
    Ok(config)
}

/// The place of a target's settings; its delays are reported on stderr. Nothing is sent yet.
pub(super) fn connect(target: &Target, directory: Option<&Utf8Path>) -> Result<Box<dyn Place>> {
    let notice = |text: &str| terminal::eprint(&container_warning(text));
    Ok(match backend(target) {
        Some(BackendName::Oci) => Box::new(Machine::new(machine_access(target), notice).map_err(failure)?),
        Some(BackendName::Slurm) => {
            let settings = target.slurm.clone().unwrap_or_default();
            let host = match &target.ssh {
                // Slurm's commands are often only on the PATH of login shells.
                Some(ssh) => host::Host::ssh(host::SshSettings {
                    host: ssh.host.clone(),
                    jump: ssh.jump.clone(),
                    login_profile: true,
                })
                .map_err(failure)?,
                None => host::Host::local(),
            };
            Box::new(slurm::Cluster::new(slurm::Access::new(host, settings), notice))
        }
        _ => Box::new(kubernetes::Cluster::new(config(target, directory)?, notice)),
    })
}
