//! The resources of an instance, in exact units.

use indexmap::IndexMap;
use jobc_schema::plan::{IoPlan, ResourcesPlan};
use jobc_schema::resources::{IoLimit, Resources, Ulimit};
use jobc_schema::role::Role;
use jobc_schema::target::Target;
use jobc_schema::{Bytes, Pointer};

use super::gpu;
use super::volumes::tidy;
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};

/// The resources of a role's instances; `first_gpu` is the logical index of the role's first GPU, and `all_gpus` says
/// that their number is the host's.
pub(super) fn resolve_resources(
    role: &Role,
    first_gpu: u32,
    all_gpus: bool,
    target: &Target,
    at: &Pointer,
    sink: &mut Sink,
) -> ResourcesPlan {
    let Some(resources) = &role.resources else { return ResourcesPlan::default() };
    let instances = at.key("instances");
    let at = at.key("resources");
    ResourcesPlan {
        cpu_millis: resources.cpu.map(|cpu| cpu.millis),
        memory_bytes: resources.memory.map(|bytes| bytes.0),
        shm_bytes: resources.shm.map(|bytes| bytes.0),
        disk_bytes: resources.disk.map(|bytes| bytes.0),
        pids: resources.pids,
        hugepages_bytes: resolve_hugepages(resources, &at.key("hugepages"), sink),
        io: resolve_io(resources, &at.key("io"), sink),
        rdma: resources.rdma,
        devices: resources.devices.iter().map(|path| tidy(path)).collect(),
        ulimits: resources
            .ulimits
            .iter()
            .map(|(name, limit)| {
                let number = if let Ulimit::Number(number) = limit { Some(*number) } else { None };
                (name.clone(), number)
            })
            .collect(),
        enforce: resources.enforce,
        gpu: resources.gpu.as_ref().map(|gpu| {
            let mut plan = gpu::resolve_gpu(gpu, first_gpu, target, &at.key("gpu"), sink);
            plan.all |= all_gpus;
            let several = role.instances.unwrap_or(1) > 1 && role.parallel != Some(1);
            if plan.all && several {
                gpu::report_several(&at.key("gpu"), &instances, sink);
            }
            plan
        }),
    }
}

/// Limits of disk traffic; a limit of 0 would stop the instance, or mean no limit to the kernel.
fn resolve_io(resources: &Resources, at: &Pointer, sink: &mut Sink) -> IndexMap<String, IoPlan> {
    let of = |(device, limit): (&String, &IoLimit)| {
        for (key, bytes) in [("read", limit.read), ("write", limit.write)] {
            if bytes == Some(Bytes(0)) {
                sink.push(
                    Diagnostic::error(
                        codes::IO_LIMIT,
                        format!("a limit of 0 bytes per second for `{device}`"),
                    )
                    .at(&at.keys([device, key]), "")
                    .note("leave it out for no limit"),
                );
            }
        }
        if *limit == IoLimit::default() {
            sink.push(
                Diagnostic::error(codes::IO_LIMIT, format!("no limit for `{device}`"))
                    .at_key(&at.key(device), "")
                    .note("add `read`, `write`, `read_ops` or `write_ops`, or leave it out"),
            );
        }
        let plan = IoPlan {
            read_bytes: limit.read.map(|bytes| bytes.0),
            write_bytes: limit.write.map(|bytes| bytes.0),
            read_ops: limit.read_ops,
            write_ops: limit.write_ops,
        };
        (device.clone(), plan)
    };
    resources.io.iter().map(of).collect()
}

fn resolve_hugepages(resources: &Resources, at: &Pointer, sink: &mut Sink) -> IndexMap<String, u64> {
    for (page, amount) in &resources.hugepages {
        let Ok(Bytes(size)) = Bytes::parse(page) else { continue };
        if size > 0 && !amount.0.is_multiple_of(size) {
            let up = Bytes(amount.0.next_multiple_of(size));
            sink.push(
                Diagnostic::error(
                    codes::HUGEPAGES,
                    format!("{amount} is not a whole number of pages of {page}"),
                )
                .at(&at.key(page), "")
                .note(format!("write `{up}`"))
                .fix(
                    format!("write `{up}`"),
                    Location::value(&at.key(page)),
                    format!("\"{up}\""),
                    Safety::Unsafe,
                ),
            );
        }
    }
    resources.hugepages.iter().map(|(page, amount)| (page.clone(), amount.0)).collect()
}
