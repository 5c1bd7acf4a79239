//! The files of the cgroup v1 hierarchies.

use super::super::controller::Controller;
use super::{LimitRequest, Limits, OptionalResource};
use jobc_schema::pointer;
use jobc_sys::error::Result;

/// Lists what a controller's files take.
pub(super) fn list(controller: Controller, request: &LimitRequest<'_>, limits: &mut Limits) -> Result<()> {
    match controller {
        Controller::Cpuset => cpuset(request, limits),
        Controller::Cpu => cpu(request, limits),
        Controller::Memory => return memory(request, limits),
        Controller::Pids => pids(request, limits),
        Controller::Io => io(request, limits),
        Controller::Hugetlb => {
            for (size, limit, place) in request.huge_pages()? {
                let files = ["rsvd.limit_in_bytes", "limit_in_bytes"]
                    .map(|end| (format!("hugetlb.{size}.{end}"), limit.to_string()));
                limits.push_files(controller, &place, files.into());
            }
        }
        Controller::Rdma => rdma(request, limits),
        Controller::NetCls | Controller::NetPrio => network(controller, request, limits),
        Controller::Cpuacct | Controller::Misc | Controller::Devices | Controller::Freezer => {}
    }
    Ok(())
}

/// CPUs and nodes of memory, the same in both versions.
pub(super) fn cpuset(request: &LimitRequest<'_>, limits: &mut Limits) {
    let Some(cpu) = request.resources.cpu() else { return };
    for (place, file, list) in
        [("cpu/cpus", "cpuset.cpus", cpu.cpus()), ("cpu/mems", "cpuset.mems", cpu.mems())]
    {
        if let Some(list) = list.as_ref().filter(|list| !list.is_empty()) {
            limits.push(Controller::Cpuset, place, file, &list);
        }
    }
}

fn cpu(request: &LimitRequest<'_>, limits: &mut Limits) {
    let Some(cpu) = request.resources.cpu() else { return };
    let (_, period) = request.bandwidth();
    // The kernel checks a quota against the period that is there, so the period comes first.
    if let Some(period) = period {
        limits.push(Controller::Cpu, "cpu/period", "cpu.cfs_period_us", &period);
    }
    if let Some(quota) = request.limit_text(cpu.quota(), "-1") {
        limits.push(Controller::Cpu, "cpu/quota", "cpu.cfs_quota_us", &quota);
    }
    if let Some(burst) = cpu.burst().filter(|burst| *burst > 0) {
        limits.push(Controller::Cpu, "cpu/burst", "cpu.cfs_burst_us", &burst);
    }
    if let Some(shares) = cpu.shares().filter(|shares| *shares > 0) {
        limits.push(Controller::Cpu, "cpu/shares", "cpu.shares", &shares);
    }
    if let Some(idle) = cpu.idle().filter(|idle| request.is_update || *idle != 0) {
        limits.push(Controller::Cpu, "cpu/idle", "cpu.idle", &idle);
    }
    if let Some(period) = cpu.realtime_period().filter(|period| *period != 0) {
        limits.push(Controller::Cpu, "cpu/realtimePeriod", "cpu.rt_period_us", &period);
    }
    if let Some(runtime) = cpu.realtime_runtime().filter(|runtime| *runtime != 0) {
        limits.push(Controller::Cpu, "cpu/realtimeRuntime", "cpu.rt_runtime_us", &runtime);
    }
}

fn memory(request: &LimitRequest<'_>, limits: &mut Limits) -> Result<()> {
    let Some(memory) = request.resources.memory() else { return Ok(()) };
    // Memory first: the kernel refuses memory and swap together below it.
    if let Some(limit) = request.limit_text(memory.limit(), "-1") {
        limits.push(Controller::Memory, "memory/limit", "memory.limit_in_bytes", &limit);
    }
    if request.frees_swap() {
        limits.push(Controller::Memory, "memory/swap", "memory.memsw.limit_in_bytes", &"-1");
        limits.writable.last_mut().expect("pushed above").satisfied_without = Some(OptionalResource::Swap);
    }
    if let Some(both) = request.memory_and_swap()? {
        limits.push(Controller::Memory, "memory/swap", "memory.memsw.limit_in_bytes", &both);
        limits.writable.last_mut().expect("pushed above").satisfied_without = Some(OptionalResource::Swap);
    }
    if let Some(low) = request.limit_text(memory.reservation(), "-1") {
        limits.push(Controller::Memory, "memory/reservation", "memory.soft_limit_in_bytes", &low);
    }
    #[allow(deprecated)]
    let kernel = memory.kernel();
    if let Some(bytes) = kernel.filter(|bytes| *bytes > 0) {
        limits.push(Controller::Memory, "memory/kernel", "memory.kmem.limit_in_bytes", &bytes);
    }
    if let Some(bytes) = memory.kernel_tcp().filter(|bytes| *bytes > 0) {
        limits.push(Controller::Memory, "memory/kernelTCP", "memory.kmem.tcp.limit_in_bytes", &bytes);
    }
    if let Some(swappiness) = memory.swappiness() {
        limits.push(Controller::Memory, "memory/swappiness", "memory.swappiness", &swappiness);
    }
    if memory.disable_oom_killer() == Some(true) {
        limits.push(Controller::Memory, "memory/disableOOMKiller", "memory.oom_control", &1);
    }
    if memory.use_hierarchy() == Some(true) {
        limits.push(Controller::Memory, "memory/useHierarchy", "memory.use_hierarchy", &1);
    }
    // `checkBeforeUpdate` holds for a new, empty group.
    Ok(())
}

/// The number of processes, the same in both versions.
pub(super) fn pids(request: &LimitRequest<'_>, limits: &mut Limits) {
    let limit = request.resources.pids().as_ref().map(oci_spec::runtime::LinuxPids::limit);
    if let Some(limit) = request.limit_text(limit, "max") {
        limits.push(Controller::Pids, "pids/limit", "pids.max", &limit);
    }
}

/// RDMA handles and objects, the same in both versions.
pub(super) fn rdma(request: &LimitRequest<'_>, limits: &mut Limits) {
    for (name, text) in request.rdma() {
        let place = format!("rdma/{}", pointer::escape(name));
        limits.push(Controller::Rdma, &place, "rdma.max", &text);
    }
}

fn io(request: &LimitRequest<'_>, limits: &mut Limits) {
    let Some(block) = request.resources.block_io() else { return };
    // Kernels before 5.0 weigh in the scheduler CFQ, later ones in BFQ.
    let files = |file: &str, text: &str| {
        vec![(format!("blkio.{file}"), text.to_owned()), (format!("blkio.bfq.{file}"), text.to_owned())]
    };
    if let Some(weight) = block.weight().filter(|weight| *weight > 0) {
        limits.push_files(Controller::Io, "blockIO/weight", files("weight", &weight.to_string()));
    }
    if let Some(weight) = block.leaf_weight().filter(|weight| *weight > 0) {
        limits.push(Controller::Io, "blockIO/leafWeight", "blkio.leaf_weight", &weight);
    }
    for (index, device) in block.weight_device().iter().flatten().enumerate() {
        let place = format!("blockIO/weightDevice/{index}");
        let number = format!("{}:{}", device.major(), device.minor());
        if let Some(weight) = device.weight() {
            let text = format!("{number} {weight}");
            limits.push_files(Controller::Io, &format!("{place}/weight"), files("weight_device", &text));
        }
        if let Some(weight) = device.leaf_weight() {
            let text = format!("{number} {weight}");
            limits.push(Controller::Io, &format!("{place}/leafWeight"), "blkio.leaf_weight_device", &text);
        }
    }
    let names = ["read_bps", "write_bps", "read_iops", "write_iops"];
    for ((field, entries), name) in request.throttles().into_iter().zip(names) {
        for (index, (device, rate)) in entries.into_iter().enumerate() {
            let file = format!("blkio.throttle.{name}_device");
            limits.push(
                Controller::Io,
                &format!("blockIO/{field}/{index}"),
                &file,
                &format!("{device} {rate}"),
            );
        }
    }
}

fn network(controller: Controller, request: &LimitRequest<'_>, limits: &mut Limits) {
    let Some(network) = request.resources.network() else { return };
    if controller == Controller::NetCls {
        if let Some(class) = network.class_id().filter(|class| *class != 0) {
            limits.push(controller, "network/classID", "net_cls.classid", &class);
        }
    } else {
        for (index, one) in network.priorities().iter().flatten().enumerate() {
            let text = format!("{} {}", one.name(), one.priority());
            limits.push(controller, &format!("network/priorities/{index}"), "net_prio.ifpriomap", &text);
        }
    }
}
