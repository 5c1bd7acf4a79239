//! `preflight`: the script of the checks before a command, the same on every place.
//!
//! It needs `sh` and the usual programs; what several tasks or GPUs must do together is a program in Python. Its last
//! line names task, node and value, and its exit code says who is at fault, of which the verdict is made.

use std::fmt::Write as _;

use jobc_schema::gpu::Vendor;
use jobc_schema::plan::{CheckPlan, CommandPlan, JobPlan, MemberPlan, Reference, RolePlan, Text};
use jobc_schema::preflight::{JOB_AT_FAULT, NAME, NODE, NODE_AT_FAULT};
use jobc_schema::shell::quote;

use crate::resolve::RENDEZVOUS;
use crate::stdlib::cuda;

const HEAD: &str = include_str!("preflight/head.sh");
const LIMIT: &str = include_str!("preflight/limit.sh");
const GPUS: &str = include_str!("preflight/gpus.sh");
const DRIVER: &str = include_str!("preflight/driver.sh");
const DATA: &str = include_str!("preflight/data.sh");
const DISK: &str = include_str!("preflight/disk.sh");
const RUN: &str = include_str!("preflight/run.sh");
const PYTHON: &str = include_str!("preflight/python.sh");
const ALLREDUCE: &str = include_str!("preflight/allreduce.sh");
const BASE: &str = include_str!("preflight/base.py");
const MEET: &str = include_str!("preflight/meet.py");
const COMPUTE: &str = include_str!("preflight/compute.py");

/// Puts the checks of a role before the words that its instances run.
pub fn before(job: &JobPlan, role: &RolePlan, words: Vec<Text>) -> Vec<Text> {
    if role.preflight.is_empty() || words.is_empty() {
        return words;
    }
    let mut whole = Text::literal("(\n");
    whole.push_text(&script(job, role));
    whole.push_str(") || exit\nexec \"$@\"\n");
    let shell = ["/bin/sh", "-c"].into_iter().map(Text::literal);
    shell.chain([whole, Text::literal(NAME)]).chain(words).collect()
}

/// Whether a shell can come before the command of a role: an image's own is known only to the place.
pub fn has_place(role: &RolePlan) -> bool {
    !matches!(role.command, CommandPlan::Image {} | CommandPlan::Args(_))
}

/// The checks of a role, as a script that ends with the exit code of the first that fails.
pub fn script(job: &JobPlan, role: &RolePlan) -> Text {
    let is = |check: fn(&CheckPlan) -> bool| role.preflight.iter().any(check);
    let has_peers = is(|check| {
        matches!(check, CheckPlan::Network { .. } | CheckPlan::Clock { .. } | CheckPlan::Allreduce { .. })
    });
    let needs_python = has_peers || is(|check| matches!(check, CheckPlan::Matmul {}));
    let parts = [
        (true, HEAD),
        (is(|check| matches!(check, CheckPlan::Gpus {})), GPUS),
        (is(|check| matches!(check, CheckPlan::Driver { .. })), DRIVER),
        (
            is(|check| {
                matches!(check, CheckPlan::Data { .. } | CheckPlan::Disk { .. } | CheckPlan::Run { .. })
            }),
            LIMIT,
        ),
        (is(|check| matches!(check, CheckPlan::Data { .. })), DATA),
        (is(|check| matches!(check, CheckPlan::Disk { .. })), DISK),
        (is(|check| matches!(check, CheckPlan::Run { .. })), RUN),
        (needs_python, PYTHON),
        (is(|check| matches!(check, CheckPlan::Allreduce { .. })), ALLREDUCE),
    ];
    let mut out = Text::literal(format!("export jobc_task={}-", role.name));
    out.push_reference(Reference::Index {});
    out.push_str(&format!(" jobc_node=\"${{{NODE}:-${{SLURMD_NODENAME:-$(uname -n)}}}}\"\n"));
    parts.iter().filter(|(is_used, _)| *is_used).for_each(|(_, part)| out.push_str(part));
    if needs_python {
        let uses_torch = is(|check| matches!(check, CheckPlan::Matmul {} | CheckPlan::Allreduce { .. }));
        let meet = if has_peers { MEET } else { "" };
        let compute = if uses_torch { COMPUTE } else { "" };
        out.push_str(&format!("checks={}\n", quote(&format!("{BASE}{meet}{compute}"))));
    }
    let mut has_met = false;
    for check in &role.preflight {
        let needs_place = matches!(
            check,
            CheckPlan::Network { .. } | CheckPlan::Clock { .. } | CheckPlan::Allreduce { .. }
        );
        if needs_place && !std::mem::replace(&mut has_met, true) {
            meet(job, role, &mut out);
        }
        call(job, role, check, &mut out);
    }
    out
}

/// How long tasks wait for each other, unless `network` says so.
const MEETING_SECONDS: u64 = 300;

/// Has the tasks of the rendezvous meet, once for all checks that need it.
fn meet(job: &JobPlan, role: &RolePlan, out: &mut Text) {
    let Some((distributed, first, own)) = members(job, role) else { return };
    let seconds = role.preflight.iter().find_map(|check| match check {
        CheckPlan::Network { seconds } => Some(*seconds),
        _ => None,
    });
    let seconds = seconds.unwrap_or(MEETING_SECONDS);
    let offset = own.first_rank.unwrap_or_default();
    out.push_str("place=$(python network ");
    out.push_reference(Reference::Host { role: first.role.clone(), index: Some(0) });
    out.push_str(" ");
    out.push_reference(Reference::Port {
        role: first.role.clone(),
        label: RENDEZVOUS.to_owned(),
        index: Some(0),
    });
    out.push_str(" ");
    out.push_reference(if offset == 0 { Reference::Index {} } else { Reference::Rank { offset } });
    out.push_str(&format!(" {} {} {seconds}) || exit\n", distributed.instances, processes(role)));
}

fn call(job: &JobPlan, role: &RolePlan, check: &CheckPlan, out: &mut Text) {
    let gpu = role.resources.gpu.as_ref();
    match check {
        CheckPlan::Gpus {} => {
            let count = gpu.map_or(1, |gpu| gpu.count.max(1));
            let (line, devices) = match gpu.map(|gpu| (gpu.vendor, gpu.share.as_ref())) {
                Some((Vendor::Amd, _)) => ("''", "/dev/dri/renderD*"),
                Some((_, Some(share))) if share.profile.is_some() => ("MIG", "/dev/nvidia[0-9]*"),
                _ => ("GPU", "/dev/nvidia[0-9]*"),
            };
            out.push_str(&format!("gpus {count} {line} '{devices}'\n"));
        }
        CheckPlan::Driver { oldest: Some(version), needed_by } => {
            let by = needed_by.as_deref().unwrap_or("the job");
            // Another node may have what was asked for; an image that is too new is too new everywhere.
            let code = if gpu.is_some_and(|gpu| gpu.driver.is_some()) { NODE_AT_FAULT } else { JOB_AT_FAULT };
            out.push_str(&format!("driver {} {} {code}\n", quote(version), quote(by)));
        }
        CheckPlan::Driver { oldest: None, .. } => {
            let floors = &cuda::table().minor_version_compat_floor;
            let cases = floors.iter().fold(String::new(), |mut cases, (major, driver)| {
                let _ = write!(cases, "{major}.*) oldest={driver} ;; ");
                cases
            });
            out.push_str(&format!("case ${{CUDA_VERSION-}} in {cases}*) oldest='' ;; esac\n"));
            out.push_str("driver \"$oldest\" \"CUDA ${CUDA_VERSION-} of the image\" 87\n");
        }
        CheckPlan::Matmul {} => out.push_str(&format!("python matmul {}\n", gpus(role))),
        CheckPlan::Data { paths } => {
            for path in paths {
                out.push_str(&format!("data {}\n", quote(path)));
            }
        }
        CheckPlan::Disk { bytes, paths } => {
            let kibibytes = bytes.div_ceil(1024);
            for path in paths {
                out.push_str(&format!("disk {kibibytes} {}\n", quote(path)));
            }
        }
        // The meeting itself is the check.
        CheckPlan::Network { .. } => {}
        CheckPlan::Clock { seconds } => out.push_str(&format!("python clock \"$place\" {seconds}\n")),
        CheckPlan::Allreduce { bytes_per_second } => {
            let Some((_, first, _)) = members(job, role) else { return };
            out.push_str(&format!("allreduce \"$place\" {} {} ", processes(role), gpus(role)));
            out.push_reference(Reference::Host { role: first.role.clone(), index: Some(0) });
            out.push_str(&format!(" {}\n", bytes_per_second.unwrap_or_default()));
        }
        CheckPlan::Run { command, timeout_seconds } => {
            out.push_str(&format!("run {timeout_seconds} {}\n", quote(command)));
        }
    }
}

/// The rendezvous of a role, its first member and the role's own part.
fn members<'a>(
    job: &'a JobPlan,
    role: &RolePlan,
) -> Option<(&'a jobc_schema::plan::DistributedPlan, &'a MemberPlan, &'a MemberPlan)> {
    let distributed = job.distributed.as_ref()?;
    let find = |is: &dyn Fn(&MemberPlan) -> bool| distributed.members.iter().find(|member| is(member));
    Some((
        distributed,
        find(&|member| member.first_rank == Some(0))?,
        find(&|member| member.role == role.name)?,
    ))
}

/// Whole GPUs or slices that an instance computes with.
fn gpus(role: &RolePlan) -> u32 {
    role.gpus().map_or(0, |gpu| gpu.count)
}

/// The processes of an instance that add up a tensor: one for each GPU.
fn processes(role: &RolePlan) -> u32 {
    gpus(role).max(1)
}
