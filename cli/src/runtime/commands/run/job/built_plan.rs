//! What to run: jobs and their files, compiled now or read from the directory of a built plan.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::Artifact;
use jobc_compiler::source::Sources;
use jobc_job::admission::ledger::PortReservation;
use jobc_job::sweep::Sweep;
use jobc_schema::Plan;
use jobc_schema::plan::{JobPlan, VolumeSource};
use jobc_sys::error::{Error, Kind, Result};
use serde_json::Value;

use crate::input::{find_targets, normalize, reason};
use crate::output::list;
use crate::runtime::args::run::{RunArgs, UnenforcedLimits};
use crate::runtime::signatures;

/// What to run: one job, or each job of a matrix.
pub(super) struct BuiltPlan {
    /// The jobs, in the order of the matrix.
    pub(super) jobs: Vec<BuiltJob>,
    /// The job file, absolute; for a built plan its directory.
    pub(super) source: PathBuf,
    /// The text of the job file; none for a built plan.
    pub(super) job_file: Option<String>,
    /// The texts that errors of builds point into; none for a built plan.
    pub(super) sources: Sources,
    /// The base directory of relative paths in the job file.
    pub(super) directory: PathBuf,
    /// The sweep that the jobs continue.
    pub(super) resumed: Option<Sweep>,
    /// Roles with fewer instances than in the job file, with the number in the job file.
    pub(super) scaled: Vec<(String, u32)>,
    /// The ports of the jobs, until their supervisors have entered them.
    pub(super) reserved_ports: Vec<PortReservation>,
    /// When NVML was asked, in nanoseconds since boot.
    pub(super) gpus_asked_at: Option<u64>,
}

/// A resolved job and the files that `jobc build` writes for it.
pub(super) struct BuiltJob {
    pub(super) plan: JobPlan,
    pub(super) files: Vec<Artifact>,
}

impl BuiltJob {
    /// The number of the job's combination, which is part of its name; none for a job file without a matrix.
    pub(super) fn number(&self) -> Option<u32> {
        let (_, number) = self.plan.name.rsplit_once('-').filter(|_| !self.plan.matrix.is_empty())?;
        number.parse().ok()
    }
}

impl BuiltPlan {
    /// The name of the sweep that the jobs are: the name in the job file. None without a matrix, and for a built plan,
    /// which is one combination.
    pub(super) fn sweep_name(&self) -> Option<&str> {
        self.job_file.as_ref()?;
        let first = self.jobs.iter().find(|job| job.number().is_some())?;
        first.plan.name.rsplit_once('-').map(|(name, _)| name)
    }

    /// What the jobs do if their limits cannot be enforced.
    pub(super) fn unenforced_limits(&self, args: &RunArgs) -> UnenforcedLimits {
        let mut roles = self.jobs.iter().flat_map(|job| &job.plan.roles);
        args.unenforced_limits(roles.any(|role| role.resources.enforce))
    }

    /// The config.json of the first task of each role, of each job.
    pub(super) fn first_bundles(&self) -> impl Iterator<Item = &[u8]> {
        self.jobs.iter().flat_map(|job| {
            let paths = job.plan.roles.iter().map(|role| format!("oci/{}-0/config.json", role.name));
            let files =
                paths.filter_map(|path| job.files.iter().find(|file| file.path == Utf8Path::new(&path)));
            files.map(|file| &file.bytes[..])
        })
    }
}

/// Reads the directory of a built plan. It is copied, so that a concurrent build does not change a running job.
pub(super) fn read(given: &Utf8Path) -> Result<BuiltPlan> {
    let given = if given.as_str().is_empty() { Utf8Path::new(".") } else { given };
    let directory = given.canonicalize_utf8().map_err(|error| unreadable(given, &error))?;
    let file = directory.join("plan.json");
    let text = std::fs::read(&file).map_err(|error| unreadable(&file, &error))?;
    let plan: Plan = serde_json::from_slice(&text).map_err(|error| {
        Error::new(Kind::Config, format!("`{file}` is not a plan of this version of jobc: {error}"))
            .help("build it again with `jobc build`")
    })?;
    let [plan] = <[JobPlan; 1]>::try_from(plan.jobs).map_err(|jobs| {
        Error::new(Kind::Config, format!("`{file}` contains {} jobs instead of one", jobs.len()))
            .help("build it again with `jobc build`")
    })?;
    let mut files = vec![Artifact { path: "plan.json".into(), mode: 0o644, bytes: text }];
    let missing = tasks(&plan).find(|task| !directory.join("oci").join(task).join("config.json").is_file());
    if let Some(task) = missing {
        let error = Error::new(Kind::Config, format!("`{directory}` has no bundle for task `{task}`"));
        return Err(error.help("build it with the oci backend: `jobc build --backend oci`"));
    }
    let base = job_directory(&plan, &directory)?;
    let targets = find_targets(&base);
    signatures::require([&plan], targets.as_deref().and_then(Utf8Path::parent))?;
    for path in list(&directory.join("oci")).map_err(|error| unreadable(&directory, &error))? {
        let path = Utf8Path::new("oci").join(path);
        // Data that was fetched by hand may be large; it is fetched again when needed.
        if path.starts_with("oci/volumes") {
            continue;
        }
        let from = directory.join(&path);
        let bytes = std::fs::read(&from).map_err(|error| unreadable(&from, &error))?;
        let mode = std::fs::metadata(&from).map_err(|error| unreadable(&from, &error))?.permissions().mode();
        let bytes = match path.file_name() {
            Some("config.json") if path.components().count() == 3 => {
                rebase_mounts(&bytes, &from, &directory)?
            }
            _ => bytes,
        };
        files.push(Artifact { path, mode: mode & 0o777, bytes });
    }
    Ok(BuiltPlan {
        source: directory.clone().into(),
        job_file: None,
        sources: Sources::new(),
        resumed: None,
        directory: base.into(),
        scaled: Vec::new(),
        reserved_ports: Vec::new(),
        gpus_asked_at: None,
        jobs: vec![BuiltJob { plan, files }],
    })
}

fn unreadable(path: &Utf8Path, error: &io::Error) -> Error {
    Error::new(Kind::Config, format!("cannot read `{path}`: {}", reason(error)))
}

fn tasks(plan: &JobPlan) -> impl Iterator<Item = String> {
    plan.roles.iter().flat_map(|role| (0..role.instances).map(|index| format!("{}-{index}", role.name)))
}

/// A bundle's config.json in which sources outside the plan's directory are absolute, since the copy is in another
/// place.
fn rebase_mounts(bytes: &[u8], file: &Utf8Path, directory: &Utf8Path) -> Result<Vec<u8>> {
    let broken =
        |error: serde_json::Error| Error::new(Kind::Config, format!("`{file}` is not JSON: {error}"));
    let mut config: Value = serde_json::from_slice(bytes).map_err(broken)?;
    let bundle = file.parent().unwrap_or(directory);
    for mount in config["mounts"].as_array_mut().into_iter().flatten() {
        let Some(source) = mount["source"].as_str().map(Utf8PathBuf::from) else { continue };
        if source.is_relative() && mount["type"] == "bind" {
            let path = normalize(&bundle.join(source));
            if !path.starts_with(directory) {
                mount["source"] = Value::String(path.into_string());
            }
        }
    }
    serde_json::to_vec_pretty(&config).map_err(broken)
}

/// The directory of the job file, the base of relative paths: taken from the bundles if one binds such a path, else
/// from the default output directory of `jobc build`.
fn job_directory(plan: &JobPlan, directory: &Utf8Path) -> Result<Utf8PathBuf> {
    for role in &plan.roles {
        for mount in &role.mounts {
            let source = plan.volumes.get(&mount.volume).map(|volume| &volume.source);
            let Some(VolumeSource::Path { path } | VolumeSource::Code { path, .. }) = source else {
                continue;
            };
            let bundle = directory.join("oci").join(format!("{}-0", role.name));
            let file = bundle.join("config.json");
            let text = std::fs::read(&file).map_err(|error| unreadable(&file, &error))?;
            let config: Value = serde_json::from_slice(&text).unwrap_or_default();
            let mounts = config["mounts"].as_array().into_iter().flatten();
            let source =
                mounts.filter(|m| m["destination"] == *mount.path).find_map(|m| m["source"].as_str());
            let relative = Utf8Path::new(path.trim_start_matches("./"));
            if let Some(source) = source.filter(|source| source.starts_with("..") && relative.is_relative())
                && let Some(way) = source.strip_suffix(relative.as_str())
            {
                return Ok(normalize(&bundle.join(way)));
            }
        }
    }
    let usual = Utf8Path::new("out").join(&plan.name).join(&plan.target.name);
    Ok(match directory.as_str().strip_suffix(usual.as_str()) {
        Some(base) if base.ends_with('/') => normalize(Utf8Path::new(base)),
        _ => directory.to_owned(),
    })
}
