//! Targets by name: their settings in the targets file, and the cluster behind them.

pub(crate) mod listing;

use std::cell::RefCell;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use indexmap::IndexMap;
use jobc_compiler::built_in_targets::built_in_targets;
use jobc_compiler::diagnostic::{DocumentId, Sink};
use jobc_compiler::document::{Document, Value};
use jobc_compiler::source::{Source, Sources};
use jobc_compiler::{parse, suggest, validate};
use jobc_place::Place;
use jobc_remote::RemotePlace;
use jobc_remote::host::Program;
use jobc_remote::kubernetes::Uses;
use jobc_remote::target::{Caller, backend, cluster_config, is_reachable, open};
use jobc_schema::BackendName;
use jobc_schema::target::Target;
use jobc_sys::error::{Error, Kind};

use super::jobs::{Failure, Result};
use crate::args::FormatArg;
use crate::input::{InputError, absolute, find_targets, read};
use crate::report;
use crate::runtime::message::container_warning;
use crate::terminal;

pub(super) use listing::list;

/// The targets of a targets file, or the built-in ones.
pub(crate) struct TargetTable {
    targets: IndexMap<String, Target>,
    /// The directory of the file.
    directory: Option<Utf8PathBuf>,
    /// Targets with errors, and what is wrong with them.
    broken: Vec<String>,
    findings: RefCell<Option<(Sources, Sink)>>,
}

impl TargetTable {
    /// Reads the file of an option, or the one that the current directory belongs to.
    pub(crate) fn read(path: Option<&Utf8Path>) -> Result<Self> {
        let wrong = |InputError(why)| Failure::usage_error(Error::new(Kind::Config, why));
        let path = match path {
            Some(path) => Some(path.to_owned()),
            None => absolute(Utf8Path::new(".")).ok().as_deref().and_then(find_targets),
        };
        let Some(path) = path else {
            let built_in = built_in_targets().into_iter().map(|(name, target)| (name.to_owned(), target));
            let (broken, findings) = (vec![], RefCell::default());
            return Ok(Self { targets: built_in.collect(), directory: None, broken, findings });
        };
        let mut sources = Sources::new();
        let id = sources.add(Source::new(path.clone(), read(&path).map_err(wrong)?));
        let mut sink = Sink::new();
        let document = parse::parse(&sources, id, &mut sink);
        let targets = document.as_ref().and_then(|document| validate::targets(document, &mut sink));
        if let Some(document) = &document {
            sink.locate(DocumentId::Targets, document, &sources);
        }
        let directory = path.parent().map(Utf8Path::to_owned);
        if let (None, Some(document)) = (&targets, &document) {
            let (targets, broken) = without_errors(document);
            if !targets.is_empty() {
                for name in &broken {
                    let message =
                        format!("the target `{name}` has errors; `jobc targets check {name}` shows them");
                    terminal::eprint(&container_warning(&message));
                }
                return Ok(Self {
                    targets,
                    directory,
                    broken,
                    findings: RefCell::new(Some((sources, sink))),
                });
            }
        }
        let Some(targets) = targets else {
            report::findings(&sources, sink, FormatArg::Text, true);
            let error = Error::new(Kind::Config, format!("the targets file `{path}` has errors"));
            return Err(Failure::usage_error(error));
        };
        let (broken, findings) = (vec![], RefCell::default());
        Ok(Self { targets: targets.targets, directory, broken, findings })
    }

    /// The targets with their settings.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Target)> {
        self.targets.iter().map(|(name, target)| (name.as_str(), target))
    }

    /// The names of the targets that jobs can be submitted to.
    pub(crate) fn clusters(&self) -> Vec<&str> {
        self.all().filter(|(_, target)| is_reachable(target)).map(|(name, _)| name).collect()
    }

    /// The settings of a target that is a cluster.
    fn cluster_target(&self, name: &str) -> Result<&Target> {
        if self.broken.iter().any(|broken| broken == name) {
            if let Some((sources, sink)) = self.findings.take() {
                report::findings(&sources, sink, FormatArg::Text, true);
            }
            let error = Error::new(Kind::Config, format!("the target `{name}` has errors"));
            return Err(Failure::usage_error(error));
        }
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
    pub(crate) fn place(&self, name: &str) -> Result<Box<dyn RemotePlace>> {
        connect(self.cluster_target(name)?, self.directory.as_deref())
    }

    /// The backend for which jobs are submitted to a target.
    pub(crate) fn backend(&self, name: &str) -> Option<BackendName> {
        self.targets.get(name).and_then(backend)
    }

    /// The namespace of a target, without asking its cluster; none if neither it nor a kubeconfig names one.
    pub(crate) fn namespace(&self, name: &str) -> Result<String> {
        let target = self.cluster_target(name)?;
        let named = target.kubernetes.as_ref().and_then(|settings| settings.namespace.clone());
        named.map_or_else(|| Ok(cluster_config(target, base(self.directory.as_deref()))?.namespace), Ok)
    }

    /// What the jobs of a target use of its cluster.
    pub(crate) fn uses(&self, name: &str) -> Result<Uses> {
        let target = self.cluster_target(name)?;
        Ok(target.kubernetes.as_ref().map(Uses::of).unwrap_or_default())
    }
}

/// The targets of a file that have no errors by themselves, and the names of the others.
fn without_errors(document: &Document) -> (IndexMap<String, Target>, Vec<String>) {
    let (mut targets, mut broken) = (IndexMap::new(), vec![]);
    let entries = |document: &Document| match document.root.get("targets").map(|node| &node.value) {
        Some(Value::Mapping(entries)) => entries.clone(),
        _ => vec![],
    };
    for one in entries(document) {
        let name = one.key.clone();
        let mut alone = document.clone();
        if let Value::Mapping(root) = &mut alone.root.value {
            root.retain(|entry| entry.key != "default");
            for entry in root.iter_mut().filter(|entry| entry.key == "targets") {
                entry.value.value = Value::Mapping(vec![one.clone()]);
            }
        }
        match validate::targets(&alone, &mut Sink::new()) {
            Some(found) => targets.extend(found.targets),
            None => broken.push(name),
        }
    }
    (targets, broken)
}

/// The error of a target that jobs are not submitted to.
pub(crate) fn not_a_cluster(name: &str, target: &Target) -> Failure {
    let error = Error::new(Kind::Unsupported, format!("jobs cannot be submitted to the target `{name}`"));
    Failure::usage_error(if target.backends.contains(&BackendName::Openpai) {
        error.help(format!(
            "`jobc build --target {name}` writes `openpai/job.yaml`; submit that file in OpenPAI's web portal"
        ))
    } else {
        error.help("it needs the backend `kubernetes` or `slurm`, or `ssh`")
    })
}

/// The place of a target's settings; its delays are reported on stderr. Nothing is sent yet.
pub(crate) fn connect(target: &Target, directory: Option<&Utf8Path>) -> Result<Box<dyn RemotePlace>> {
    let caller = Caller {
        directory: base(directory),
        program: Program {
            path: std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()),
            version: format!("jobc {}", env!("CARGO_PKG_VERSION")),
        },
        notice: |text| terminal::eprint(&container_warning(text)),
    };
    open(target, caller).map_err(Failure::from)
}

/// The place of a target by its name.
pub(super) fn open_target(name: &str) -> Result<Box<dyn Place>> {
    let place: Box<dyn Place> = TargetTable::read(None)?.place(name)?;
    Ok(place)
}

/// The base of relative paths in a targets file.
fn base(directory: Option<&Utf8Path>) -> &Path {
    directory.map_or(Path::new("."), Utf8Path::as_std_path)
}
