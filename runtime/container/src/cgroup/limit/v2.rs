//! The files of the cgroup v2 hierarchy.

use super::super::controller::Controller;
use super::{LimitRequest, Limits, OptionalResource};
use jobc_sys::error::Result;

/// The weight of cgroup v2 for shares of cgroup v1: the ends of one scale meet those of the other.
///
/// The formula of the backend `cgroup`, so that a task gets the weight of its generated files.
fn weight(shares: u64) -> u64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9_999 / 262_142
}

/// The weight of disk traffic on the scale of `io.weight`, from that of OCI (10 to 1000).
fn io_weight(weight: u16) -> u64 {
    1 + (u64::from(weight).clamp(10, 1_000) - 10) * 9_999 / 990
}

/// Lists the values that a controller's files accept.
pub(super) fn list(controller: Controller, request: &LimitRequest<'_>, limits: &mut Limits) -> Result<()> {
    match controller {
        Controller::Cpuset => super::v1::cpuset(request, limits),
        Controller::Cpu => cpu(request, limits),
        Controller::Memory => return memory(request, limits),
        Controller::Pids => super::v1::pids(request, limits),
        Controller::Io => io(request, limits),
        Controller::Hugetlb => {
            for (size, limit, place) in request.huge_pages()? {
                // Reservations first: what cannot be reserved is never used.
                let files =
                    ["rsvd.max", "max"].map(|end| (format!("hugetlb.{size}.{end}"), limit.to_string()));
                limits.push_files(controller, &place, files.into());
            }
        }
        Controller::Rdma => super::v1::rdma(request, limits),
        Controller::NetCls | Controller::NetPrio => network(controller, request, limits),
        Controller::Cpuacct | Controller::Misc | Controller::Devices | Controller::Freezer => {}
    }
    Ok(())
}

fn cpu(request: &LimitRequest<'_>, limits: &mut Limits) {
    let Some(cpu) = request.resources.cpu() else { return };
    match request.bandwidth() {
        (Some(quota), Some(period)) => {
            limits.push(Controller::Cpu, "cpu/quota", "cpu.max", &format!("{quota} {period}"));
        }
        (Some(quota), None) => limits.push(Controller::Cpu, "cpu/quota", "cpu.max", &quota),
        (None, Some(period)) => {
            limits.push(Controller::Cpu, "cpu/period", "cpu.max", &format!("max {period}"));
        }
        (None, None) if request.is_update && cpu.quota().is_some_and(|quota| quota < 0) => {
            limits.push(Controller::Cpu, "cpu/quota", "cpu.max", &"max");
        }
        (None, None) => {}
    }
    if let Some(burst) = cpu.burst().filter(|burst| *burst > 0) {
        limits.push(Controller::Cpu, "cpu/burst", "cpu.max.burst", &burst);
    }
    if let Some(shares) = cpu.shares().filter(|shares| *shares > 0) {
        limits.push(Controller::Cpu, "cpu/shares", "cpu.weight", &weight(shares));
    }
    if let Some(idle) = cpu.idle().filter(|idle| request.is_update || *idle != 0) {
        limits.push(Controller::Cpu, "cpu/idle", "cpu.idle", &idle);
    }
    if cpu.realtime_runtime().is_some_and(|runtime| runtime != 0) {
        limits.push_unsupported("cpu/realtimeRuntime", "real-time CPU limit", "2");
    }
    if cpu.realtime_period().is_some_and(|period| period != 0) {
        limits.push_unsupported("cpu/realtimePeriod", "real-time CPU limit", "2");
    }
}

fn memory(request: &LimitRequest<'_>, limits: &mut Limits) -> Result<()> {
    let Some(memory) = request.resources.memory() else { return Ok(()) };
    if let Some(limit) = request.limit_text(memory.limit(), "max") {
        limits.push(Controller::Memory, "memory/limit", "memory.max", &limit);
    }
    if request.frees_swap() {
        limits.push(Controller::Memory, "memory/swap", "memory.swap.max", &"max");
        limits.writable.last_mut().expect("pushed above").satisfied_without = Some(OptionalResource::Swap);
    }
    if let Some(both) = request.memory_and_swap()? {
        // cgroup v2 counts swap separately.
        let swap = both - request.memory().unwrap_or(both);
        limits.push(Controller::Memory, "memory/swap", "memory.swap.max", &swap);
        limits.writable.last_mut().expect("pushed above").satisfied_without = Some(OptionalResource::Swap);
    }
    if let Some(low) = request.limit_text(memory.reservation(), "0") {
        limits.push(Controller::Memory, "memory/reservation", "memory.low", &low);
    }
    #[allow(deprecated)]
    let kernel = memory.kernel();
    if kernel.is_some_and(|bytes| bytes > 0) {
        limits.push_unsupported("memory/kernel", "separate kernel memory limit", "2");
    }
    if memory.kernel_tcp().is_some_and(|bytes| bytes > 0) {
        limits.push_unsupported("memory/kernelTCP", "separate TCP memory limit", "2");
    }
    if memory.swappiness().is_some() {
        limits.push_unsupported("memory/swappiness", "swappiness per cgroup", "2");
    }
    if memory.disable_oom_killer() == Some(true) {
        limits.push_unsupported("memory/disableOOMKiller", "switch for the OOM killer", "2");
    }
    // `useHierarchy` is so in cgroup v2, and `checkBeforeUpdate` holds for a new, empty group.
    Ok(())
}

fn io(request: &LimitRequest<'_>, limits: &mut Limits) {
    let Some(block) = request.resources.block_io() else { return };
    // `io.weight` is of the io.cost model, `io.bfq.weight` of the disk scheduler BFQ; a kernel may have both.
    let files = |prefix: &str, weight: u16| {
        vec![
            ("io.weight".to_owned(), format!("{prefix}{}", io_weight(weight))),
            ("io.bfq.weight".to_owned(), format!("{prefix}{weight}")),
        ]
    };
    if let Some(weight) = block.weight().filter(|weight| *weight > 0) {
        limits.push_files(Controller::Io, "blockIO/weight", files("", weight));
    }
    if block.leaf_weight().is_some_and(|weight| weight > 0) {
        limits.push_unsupported("blockIO/leafWeight", "leaf weight", "2");
    }
    for (index, device) in block.weight_device().iter().flatten().enumerate() {
        let place = format!("blockIO/weightDevice/{index}");
        if let Some(weight) = device.weight() {
            let prefix = format!("{}:{} ", device.major(), device.minor());
            limits.push_files(Controller::Io, &format!("{place}/weight"), files(&prefix, weight));
        }
        if device.leaf_weight().is_some() {
            limits.push_unsupported(&format!("{place}/leafWeight"), "leaf weight", "2");
        }
    }
    for ((field, entries), key) in request.throttles().into_iter().zip(["rbps", "wbps", "riops", "wiops"]) {
        for (index, (device, rate)) in entries.into_iter().enumerate() {
            let rate = if rate == 0 { "max".to_owned() } else { rate.to_string() };
            let text = format!("{device} {key}={rate}");
            limits.push(Controller::Io, &format!("blockIO/{field}/{index}"), "io.max", &text);
        }
    }
}

fn network(controller: Controller, request: &LimitRequest<'_>, limits: &mut Limits) {
    let Some(network) = request.resources.network() else { return };
    if controller == Controller::NetCls && network.class_id().is_some_and(|class| class != 0) {
        limits.push_unsupported("network/classID", "network class", "2");
    }
    if controller == Controller::NetPrio && network.priorities().as_ref().is_some_and(|list| !list.is_empty())
    {
        limits.push_unsupported("network/priorities", "network priority", "2");
    }
}
