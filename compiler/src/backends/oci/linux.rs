//! The Linux part of a bundle: namespaces, limits, hidden paths, the seccomp filter.

use jobc_schema::job::Network;
use jobc_schema::plan::{JobPlan, RolePlan};
use oci_spec::runtime::{
    Capability, Linux, LinuxBlockIo, LinuxCpu, LinuxDeviceCgroup, LinuxDeviceType, LinuxHugepageLimit,
    LinuxMemory, LinuxNamespace, LinuxNamespaceType, LinuxPids, LinuxResources, LinuxThrottleDeviceBuilder,
};

use crate::backend::limits::{DEVICES, DeviceRule, Limits, Throttle};
use crate::backend::tasks::Task;

use super::seccomp;

/// Paths that expose or change the host; hidden, as other engines do.
const MASKED_PATHS: [&str; 12] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
];

/// Read-only paths.
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// The Linux part of a task's bundle.
pub(super) fn linux(job: &JobPlan, task: Task<'_>, held: &[Capability]) -> Linux {
    let privileged = task.role.security.privileged;
    let paths = |list: &[&str]| Some(list.iter().map(|path| (*path).to_owned()).collect());
    let mut linux = Linux::default();
    linux
        .set_namespaces(Some(namespaces(job.network)))
        .set_cgroups_path(Some(task.cgroup_path(job).into()))
        .set_resources(Some(resources(job, task.role)))
        .set_masked_paths(if privileged { None } else { paths(&MASKED_PATHS) })
        .set_readonly_paths(if privileged { None } else { paths(&READ_ONLY) })
        .set_seccomp((!privileged).then(|| seccomp::filter(held)));
    linux
}

/// New namespaces; the host's network is shared unless the job requests its own or none.
fn namespaces(network: Network) -> Vec<LinuxNamespace> {
    let mut kinds = vec![
        LinuxNamespaceType::Pid,
        LinuxNamespaceType::Ipc,
        LinuxNamespaceType::Uts,
        LinuxNamespaceType::Mount,
        LinuxNamespaceType::Cgroup,
    ];
    if matches!(network, Network::Job | Network::None) {
        kinds.push(LinuxNamespaceType::Network);
    }
    let namespace = |kind| {
        let mut namespace = LinuxNamespace::default();
        namespace.set_typ(kind);
        namespace
    };
    kinds.into_iter().map(namespace).collect()
}

fn resources(job: &JobPlan, role: &RolePlan) -> LinuxResources {
    let limits = Limits::of(job, role);
    let mut resources = LinuxResources::default();
    resources.set_devices(Some(devices(limits.all_devices)));
    if let Some(memory) = limits.memory {
        let mut limit = LinuxMemory::default();
        // OCI counts memory and swap together.
        limit
            .set_limit(Some(signed(memory.bytes)))
            .set_swap(Some(signed(memory.bytes.saturating_add(memory.swap))));
        resources.set_memory(Some(limit));
    }
    let io = block_io(&limits);
    if io != LinuxBlockIo::default() {
        resources.set_block_io(Some(io));
    }
    let mut cpu = LinuxCpu::default();
    if let Some(limit) = limits.cpu {
        cpu.set_shares(Some(limit.shares))
            .set_quota(Some(signed(limit.quota)))
            .set_period(Some(limit.period));
    }
    cpu.set_cpus(limits.cpuset).set_mems(limits.mems);
    if cpu != LinuxCpu::default() {
        resources.set_cpu(Some(cpu));
    }
    if let Some(limit) = limits.pids {
        let mut pids = LinuxPids::default();
        pids.set_limit(i64::from(limit));
        resources.set_pids(Some(pids));
    }
    let huge_page = |page: crate::backend::limits::HugePageLimit| {
        let mut limit = LinuxHugepageLimit::default();
        limit.set_page_size(page.size).set_limit(signed(page.bytes));
        limit
    };
    if !limits.huge_pages.is_empty() {
        resources.set_hugepage_limits(Some(limits.huge_pages.into_iter().map(huge_page).collect()));
    }
    resources
}

/// Weight and limits of disk traffic; limits of a path are an annotation, as only a host knows its device.
fn block_io(limits: &Limits) -> LinuxBlockIo {
    let list = |key: &str| {
        let one = |throttle: &Throttle| {
            let (major, minor) = throttle.number()?;
            let (_, rate) = throttle.limits.rates().find(|(known, _)| *known == key)?;
            let device = LinuxThrottleDeviceBuilder::default().major(major).minor(minor).rate(rate);
            device.build().ok()
        };
        let all: Vec<_> = limits.throttles.iter().filter_map(one).collect();
        (!all.is_empty()).then_some(all)
    };
    let mut io = LinuxBlockIo::default();
    io.set_weight(limits.io.map(|weight| weight.0))
        .set_throttle_read_bps_device(list("rbps"))
        .set_throttle_write_bps_device(list("wbps"))
        .set_throttle_read_iops_device(list("riops"))
        .set_throttle_write_iops_device(list("wiops"));
    io
}

fn devices(all: bool) -> Vec<LinuxDeviceCgroup> {
    let mut every = LinuxDeviceCgroup::default();
    every.set_allow(all).set_access(Some("rwm".to_owned()));
    let rule = |rule: &DeviceRule| {
        let mut device = LinuxDeviceCgroup::default();
        device
            .set_allow(true)
            .set_typ(Some(if rule.kind == 'b' { LinuxDeviceType::B } else { LinuxDeviceType::C }))
            .set_major(rule.major.map(i64::from))
            .set_minor(rule.minor.map(i64::from))
            .set_access(Some(rule.access.to_owned()));
        device
    };
    if all { vec![every] } else { std::iter::once(every).chain(DEVICES.iter().map(rule)).collect() }
}

/// OCI's numbers are signed; a larger value is not a limit on any host.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
