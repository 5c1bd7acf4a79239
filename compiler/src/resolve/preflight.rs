//! `preflight`: checks before the command, of the job for the roles that they are for, or of a role.

use indexmap::IndexMap;
use jobc_schema::gpu::Vendor;
use jobc_schema::plan::{
    CheckPlan, DistributedPlan, ImagePlan, ImageSource, PortPlan, RolePlan, VolumePlan, VolumeSource,
};
use jobc_schema::preflight::{Check, CheckWord, MeasuredCheck};
use jobc_schema::role::Role;
use jobc_schema::{Job, Pointer};

use super::framework::RENDEZVOUS;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::stdlib::{cuda, images};

/// How far clocks may differ, where the job file has no number.
const CLOCK_SECONDS: u64 = 1;
/// How long tasks wait for each other.
const NETWORK_SECONDS: u64 = 300;
/// How long a command may take.
const RUN_SECONDS: u64 = 60;

/// What the checks of a role depend on.
pub(super) struct Surroundings<'a> {
    pub(super) job: &'a Job,
    pub(super) volumes: &'a IndexMap<String, VolumePlan>,
    pub(super) images: &'a IndexMap<String, ImagePlan>,
    pub(super) distributed: Option<&'a DistributedPlan>,
    /// The ports of the job's roles, in their order.
    pub(super) ports: &'a [Vec<PortPlan>],
}

/// The checks of a role. Those of the job are left out where they check nothing of the role.
pub(super) fn resolve_preflight(
    around: &Surroundings<'_>,
    role: &Role,
    plan: &RolePlan,
    sink: &mut Sink,
) -> Vec<CheckPlan> {
    let (checks, at) = match &role.preflight {
        Some(own) => (own, plan.at().key("preflight")),
        None => (&around.job.preflight, Pointer::ROOT.key("preflight")),
    };
    let mut resolved = vec![];
    for (number, check) in checks.iter().enumerate() {
        let at = at.index(number);
        match around.resolve(check, plan) {
            Ok(check) => resolved.push(check),
            Err((message, note)) if role.preflight.is_some() => {
                sink.push(Diagnostic::error(codes::PREFLIGHT, message).at(&at, "").note(note));
            }
            Err(_) => {}
        }
    }
    resolved
}

/// Reports checks of the job that are for none of its roles.
pub(super) fn check_unused(job: &Job, roles: &[RolePlan], sink: &mut Sink) {
    if job.preflight.is_empty() || job.roles.values().any(|role| role.preflight.is_some()) {
        return;
    }
    for (number, check) in job.preflight.iter().enumerate() {
        let is_used = |role: &RolePlan| role.preflight.iter().any(|own| name(own) == written_name(check));
        if !roles.iter().any(is_used) {
            let message = format!("no role has what `{}` checks", written_name(check));
            sink.push(
                Diagnostic::error(codes::PREFLIGHT, message)
                    .at(&Pointer::ROOT.key("preflight").index(number), "")
                    .note("`gpus`, `driver` and `matmul` are for roles with GPUs, `data` for those that mount some, and `network`, `clock` and `allreduce` for the instances of `distributed`"),
            );
        }
    }
}

type Unfit = (String, &'static str);

impl Surroundings<'_> {
    fn resolve(&self, check: &Check, plan: &RolePlan) -> Result<CheckPlan, Unfit> {
        let measured = match check {
            Check::Word(word) => return self.word(*word, plan),
            Check::Measured(measured) => measured,
        };
        match measured {
            MeasuredCheck { disk: Some(bytes), path, .. } => {
                Ok(CheckPlan::Disk { bytes: bytes.0, paths: self.directories(path.as_deref(), plan) })
            }
            MeasuredCheck { clock: Some(most), .. } => {
                self.needs_peers("clock", plan)?;
                Ok(CheckPlan::Clock { seconds: most.0 })
            }
            MeasuredCheck { network: Some(time), .. } => {
                self.needs_peers("network", plan)?;
                Ok(CheckPlan::Network { seconds: time.0 })
            }
            MeasuredCheck { allreduce: Some(rate), .. } => {
                self.needs_peers("allreduce", plan)?;
                Ok(CheckPlan::Allreduce { bytes_per_second: Some(rate.0) })
            }
            // An earlier pass checks that one is set.
            MeasuredCheck { run, timeout, .. } => Ok(CheckPlan::Run {
                command: run.clone().unwrap_or_default(),
                timeout_seconds: timeout.map_or(RUN_SECONDS, |time| time.0),
            }),
        }
    }

    fn word(&self, word: CheckWord, plan: &RolePlan) -> Result<CheckPlan, Unfit> {
        Ok(match word {
            CheckWord::Gpus => {
                needs_gpus("gpus", plan, &[Vendor::Nvidia, Vendor::Amd])?;
                CheckPlan::Gpus {}
            }
            CheckWord::Driver => {
                needs_gpus("driver", plan, &[Vendor::Nvidia])?;
                self.driver(plan)
            }
            CheckWord::Matmul => {
                needs_gpus("matmul", plan, &[Vendor::Nvidia, Vendor::Amd])?;
                CheckPlan::Matmul {}
            }
            CheckWord::Data => CheckPlan::Data { paths: self.data(plan)? },
            CheckWord::Clock => {
                self.needs_peers("clock", plan)?;
                CheckPlan::Clock { seconds: CLOCK_SECONDS }
            }
            CheckWord::Network => {
                self.needs_peers("network", plan)?;
                CheckPlan::Network { seconds: NETWORK_SECONDS }
            }
            CheckWord::Allreduce => {
                self.needs_peers("allreduce", plan)?;
                CheckPlan::Allreduce { bytes_per_second: None }
            }
        })
    }

    /// The driver that the role asks for, or that the CUDA of its program or image needs.
    fn driver(&self, plan: &RolePlan) -> CheckPlan {
        let gpu = plan.resources.gpu.as_ref();
        if let Some(version) = gpu.and_then(|gpu| gpu.driver.clone()) {
            return CheckPlan::Driver { oldest: Some(version), needed_by: Some("`gpu.driver`".to_owned()) };
        }
        let of_program = gpu.and_then(|gpu| gpu.cuda.clone()).map(|cuda| (cuda, "the program"));
        let of_image = || {
            let image = self.images.get(&plan.image)?;
            let cuda = match &image.source {
                ImageSource::Reference {} => images::facts(&image.reference)?.cuda,
                ImageSource::Build { from, .. } => images::facts(from)?.cuda,
                ImageSource::Dockerfile { base, env, .. } => match env.get("CUDA_VERSION") {
                    Some(version) => Some(version.clone()),
                    None => images::facts(base.as_deref()?)?.cuda,
                },
                ImageSource::Host { .. } | ImageSource::File { .. } => None,
            };
            cuda.map(|cuda| (cuda, "the image"))
        };
        let known = of_program.or_else(of_image);
        let oldest =
            known.and_then(|(version, whose)| Some((cuda::oldest_driver(&version)?, version, whose)));
        CheckPlan::Driver {
            needed_by: oldest.as_ref().map(|(_, version, whose)| format!("CUDA {version} of {whose}")),
            oldest: oldest.map(|(driver, ..)| driver.to_owned()),
        }
    }

    /// Where the role has data that exists before the job.
    fn data(&self, plan: &RolePlan) -> Result<Vec<String>, Unfit> {
        let is_data = |volume: &str| {
            let source = self.volumes.get(volume).map(|volume| &volume.source);
            let is_empty = matches!(
                source,
                None | Some(
                    VolumeSource::Job { .. }
                        | VolumeSource::Memory { .. }
                        | VolumeSource::Instance { .. }
                        | VolumeSource::Code { .. }
                )
            );
            self.job.data.contains_key(volume) && !is_empty
        };
        let mounts = plan.mounts.iter().filter(|mount| is_data(&mount.volume));
        let paths: Vec<String> = mounts.map(|mount| mount.path.clone()).collect();
        if paths.is_empty() {
            let note = "list what the role reads under `data`, or leave `data` out of its checks";
            return Err((format!("role `{}` has no data to check", plan.name), note));
        }
        Ok(paths)
    }

    /// Where room is needed.
    fn directories(&self, path: Option<&str>, plan: &RolePlan) -> Vec<String> {
        if let Some(path) = path {
            return vec![path.to_owned()];
        }
        let outputs = plan.mounts.iter().filter(|mount| self.job.outputs.contains_key(&mount.volume));
        let outputs: Vec<String> = outputs.map(|mount| mount.path.clone()).collect();
        if outputs.is_empty() { vec![".".to_owned()] } else { outputs }
    }

    /// Whether the role has ranks in a rendezvous of several instances with a known place.
    fn needs_peers(&self, check: &str, plan: &RolePlan) -> Result<(), Unfit> {
        let none = |note: &'static str| {
            Err((
                format!(
                    "`{check}` compares the instances of `distributed`, and `{}` has no others",
                    plan.name
                ),
                note,
            ))
        };
        let Some(distributed) = self.distributed else {
            return none("name the instances in `distributed`, which gives them ranks, or leave it out");
        };
        let is_ranked =
            distributed.members.iter().any(|own| own.role == plan.name && own.first_rank.is_some());
        if !is_ranked || distributed.instances < 2 {
            return none("leave it out for this role");
        }
        if distributed.elastic.is_some() {
            return none("the instances of an elastic rendezvous come and go; leave it out");
        }
        let first = distributed.members.iter().find(|member| member.first_rank == Some(0));
        let number = first.and_then(|first| self.job.roles.get_index_of(&first.role));
        let ports = number.and_then(|number| self.ports.get(number)).into_iter().flatten();
        if !ports.into_iter().any(|port| port.label == RENDEZVOUS) {
            return none(
                "its framework needs no port; write `port: 29500` in `distributed`, at which they meet",
            );
        }
        Ok(())
    }
}

fn needs_gpus(check: &str, plan: &RolePlan, vendors: &[Vendor]) -> Result<(), Unfit> {
    // With `all` the number may be unknown.
    let gpu = plan.resources.gpu.as_ref().filter(|gpu| gpu.count > 0 || gpu.all);
    match gpu {
        None => Err((
            format!("`{check}` checks GPUs, and role `{}` has none", plan.name),
            "ask for them, as in `resources: {gpu: 1}`, or leave it out",
        )),
        Some(gpu) if !vendors.contains(&gpu.vendor) => Err((
            format!("`{check}` checks no {}", gpu.vendor.card()),
            "write a command that checks them, as in `{run: ./check.sh}`",
        )),
        Some(_) => Ok(()),
    }
}

/// The check's name in the job file.
pub(crate) fn name(check: &CheckPlan) -> &'static str {
    match check {
        CheckPlan::Gpus {} => "gpus",
        CheckPlan::Driver { .. } => "driver",
        CheckPlan::Matmul {} => "matmul",
        CheckPlan::Data { .. } => "data",
        CheckPlan::Disk { .. } => "disk",
        CheckPlan::Network { .. } => "network",
        CheckPlan::Clock { .. } => "clock",
        CheckPlan::Allreduce { .. } => "allreduce",
        CheckPlan::Run { .. } => "run",
    }
}

fn written_name(check: &Check) -> &'static str {
    match check {
        Check::Word(word) => match word {
            CheckWord::Gpus => "gpus",
            CheckWord::Driver => "driver",
            CheckWord::Matmul => "matmul",
            CheckWord::Data => "data",
            CheckWord::Clock => "clock",
            CheckWord::Network => "network",
            CheckWord::Allreduce => "allreduce",
        },
        Check::Measured(MeasuredCheck { disk: Some(_), .. }) => "disk",
        Check::Measured(MeasuredCheck { clock: Some(_), .. }) => "clock",
        Check::Measured(MeasuredCheck { network: Some(_), .. }) => "network",
        Check::Measured(MeasuredCheck { allreduce: Some(_), .. }) => "allreduce",
        Check::Measured(_) => "run",
    }
}
