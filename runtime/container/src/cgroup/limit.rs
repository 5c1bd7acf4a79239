//! The limits that config.json asks for, as what is written to the kernel's files.
//!
//! A limit that limits nothing (`-1`, or 0 where the runtimes read that as "not set") is not written, so it needs no
//! controller either. Sources: OCI runtime specification, config-linux.md "Cgroups"; cgroup-v1/*.rst and
//! cgroup-v2.rst below Documentation/admin-guide of the kernel.

mod v1;
mod v2;

use oci_spec::runtime::LinuxResources;

use super::controller::Controller;
use super::layout::Layout;
use jobc_schema::pointer;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::kernel_file;

/// One limit and the files that take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The controller that the files belong to.
    pub controller: Controller,
    /// The files, each with its text. All that a kernel has are written, and one of them it must have.
    pub files: Vec<(String, String)>,
    /// The field that asks for it: a JSON Pointer into config.json.
    pub pointer: String,
    /// A limit on something the host may not have at all; then a kernel without the file keeps it as well.
    pub satisfied_without: Option<OptionalResource>,
}

/// A feature that a host may lack, in which case there is nothing to limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalResource {
    /// Swap space.
    Swap,
}

/// Whether the host swaps at all: a line of /proc/swaps below its heading.
pub(super) fn has_swap() -> bool {
    kernel_file::text("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}

/// The limits that can be written, and those that neither version has.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// In the order they must be written.
    pub(super) writable: Vec<Limit>,
    /// One error of [`Kind::Unenforceable`] for each limit that has no file here.
    pub(super) unsupported: Vec<Error>,
}

/// Files that a kernel may have for compatibility: it accepts writes and enforces nothing.
///
/// There is no separate limit of kernel memory since Linux 5.16 (cgroup-v1/memory.rst,
/// `memory.kmem.limit_in_bytes`).
const NO_EFFECT_FILES: [&str; 1] = ["memory.kmem.limit_in_bytes"];

impl Limit {
    /// Whether what was written to a file must be read back to know that it is kept.
    pub(super) fn needs_read_back(file: &str) -> bool {
        NO_EFFECT_FILES.contains(&file)
    }
}

impl Limits {
    /// The limits that `resources` ask for, but for devices, on a host of that layout.
    ///
    /// # Errors
    ///
    /// Limits that are invalid on every host, such as less memory and swap together than memory.
    pub(super) fn of(resources: &LinuxResources, layout: &Layout) -> Result<Self> {
        Self::list(&LimitRequest { resources, is_update: false }, layout)
    }

    /// The same for a group that has limits: removed limits (`-1`) are written too.
    pub(super) fn of_update(resources: &LinuxResources, layout: &Layout) -> Result<Self> {
        Self::list(&LimitRequest { resources, is_update: true }, layout)
    }

    fn list(request: &LimitRequest<'_>, layout: &Layout) -> Result<Self> {
        let mut limits = Limits::default();
        for controller in WRITE_ORDER {
            if layout.hierarchy(controller).is_some() {
                v1::list(controller, request, &mut limits)?;
                continue;
            }
            // Without the controller the list reports what cannot be enforced.
            let mut found = Limits::default();
            v2::list(controller, request, &mut found)?;
            if !found.writable.is_empty() && layout.version(controller).is_none() {
                found
                    .unsupported
                    .extend(found.writable.drain(..).map(|limit| no_controller(controller, &limit.pointer)));
            }
            if !layout.hierarchies.is_empty()
                && matches!(controller, Controller::NetCls | Controller::NetPrio)
            {
                // Version 1 is here, without this one.
                let name = controller.name();
                for error in &mut found.unsupported {
                    error.what = format!(
                        "no cgroup v1 hierarchy with `{name}` is mounted, and cgroup v2 does not have it"
                    );
                }
            }
            limits.writable.append(&mut found.writable);
            limits.unsupported.append(&mut found.unsupported);
        }
        push_unified_files(request.resources, layout, &mut limits)?;
        limits.unsupported.dedup_by(|later, earlier| later.at == earlier.at);
        Ok(limits)
    }

    fn push(&mut self, controller: Controller, place: &str, file: &str, text: &dyn ToString) {
        self.push_files(controller, place, vec![(file.to_owned(), text.to_string())]);
    }

    fn push_files(&mut self, controller: Controller, place: &str, files: Vec<(String, String)>) {
        let place = format!("/linux/resources/{place}");
        self.writable.push(Limit { controller, files, pointer: place, satisfied_without: None });
    }

    /// Says that a field has no counterpart in the version of a controller that is here.
    fn push_unsupported(&mut self, place: &str, what: &str, version: &str) {
        self.unsupported.push(
            Error::new(Kind::Unenforceable, format!("cgroup v{version} has no {what}"))
                .at(format!("/linux/resources/{place}"))
                .help(ALLOW_UNENFORCED_HELP),
        );
    }
}

/// Advice for a limit that cannot be enforced.
pub const ALLOW_UNENFORCED_HELP: &str =
    "remove it from config.json, or run without it with `--allow-unenforced`";

/// The period of CPU time that a new group has (`default_cfs_period` in kernel/sched/fair.c).
const DEFAULT_CPU_PERIOD_US: u64 = 100_000;

/// The order of writing. CPU sets come first: a cgroup v1 group takes no process before it has one.
const WRITE_ORDER: [Controller; 9] = [
    Controller::Cpuset,
    Controller::Cpu,
    Controller::Memory,
    Controller::Pids,
    Controller::Io,
    Controller::Hugetlb,
    Controller::NetCls,
    Controller::NetPrio,
    Controller::Rdma,
];

/// The input for a limit.
struct LimitRequest<'a> {
    resources: &'a LinuxResources,
    /// Whether limits may already exist, so that an unlimited value must be written too.
    is_update: bool,
}

impl LimitRequest<'_> {
    /// The text written for a limit; `unlimited` for a negative number, which removes the limit.
    fn limit_text(&self, limit: Option<i64>, unlimited: &str) -> Option<String> {
        match limit? {
            1.. => limit.map(|limit| limit.to_string()),
            0 => None,
            _ => self.is_update.then(|| unlimited.to_owned()),
        }
    }

    /// Whether memory and swap together lose their limit.
    fn frees_swap(&self) -> bool {
        let swap = self.resources.memory().and_then(|memory| memory.swap());
        self.is_update && swap.is_some_and(|swap| swap < 0)
    }

    /// The limit of memory in bytes, where it limits something.
    fn memory(&self) -> Option<i64> {
        self.resources.memory().and_then(|memory| memory.limit()).filter(|limit| *limit > 0)
    }

    /// The limit of memory and swap together, where it limits something, checked against that of memory.
    fn memory_and_swap(&self) -> Result<Option<i64>> {
        let place = "/linux/resources/memory/swap";
        let Some(both) = self.resources.memory().and_then(|memory| memory.swap()).filter(|swap| *swap > 0)
        else {
            return Ok(None);
        };
        let Some(memory) = self.memory() else {
            let message = "`swap` counts memory and swap together, and `limit` is not set";
            return Err(Error::new(Kind::Config, message)
                .at(place)
                .help("set `limit` too, or remove `swap`"));
        };
        if both < memory {
            let message = format!(
                "`swap` counts memory and swap together, so {both} is less than the {memory} of `limit`"
            );
            return Err(Error::new(Kind::Config, message).at(place).help(format!("write at least {memory}")));
        }
        Ok(Some(both))
    }

    /// CPU time: the quota where it limits something, and the period.
    ///
    /// A period without a quota limits nothing; a quota that is set later counts in it. Callers write the kernel's own
    /// where they limit nothing, and it needs no group.
    fn bandwidth(&self) -> (Option<i64>, Option<u64>) {
        let cpu = self.resources.cpu().as_ref();
        let quota = cpu.and_then(oci_spec::runtime::LinuxCpu::quota).filter(|quota| *quota > 0);
        let is_written = |period: &u64| {
            *period > 0 && (self.is_update || quota.is_some() || *period != DEFAULT_CPU_PERIOD_US)
        };
        (quota, cpu.and_then(oci_spec::runtime::LinuxCpu::period).filter(is_written))
    }

    /// The sizes of huge pages with their limits, each size checked to be a part of a file's name.
    fn huge_pages(&self) -> Result<Vec<(&str, i64, String)>> {
        let mut list = vec![];
        for (index, limit) in self.resources.hugepage_limits().iter().flatten().enumerate() {
            let size = limit.page_size();
            let number = ["KB", "MB", "GB"].iter().find_map(|unit| size.strip_suffix(unit));
            if !number
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
            {
                return Err(Error::new(Kind::Config, format!("`{size}` is not a huge page size"))
                    .at(format!("/linux/resources/hugepageLimits/{index}/pageSize"))
                    .help("write a number and KB, MB or GB, such as `2MB`"));
            }
            if limit.limit() >= 0 {
                list.push((size.as_str(), limit.limit(), format!("hugepageLimits/{index}")));
            }
        }
        Ok(list)
    }

    /// RDMA devices in the order of their names, each with what the kernel reads.
    fn rdma(&self) -> Vec<(&str, String)> {
        let mut list: Vec<_> = self.resources.rdma().iter().flatten().collect();
        list.sort_by_key(|(name, _)| name.as_str());
        list.into_iter()
            .map(|(name, limit)| {
                let mut text = name.clone();
                let parts = [("hca_handle", limit.hca_handles()), ("hca_object", limit.hca_objects())];
                for (key, value) in parts {
                    if let Some(value) = value {
                        text += &format!(" {key}={value}");
                    }
                }
                (name.as_str(), text)
            })
            .collect()
    }

    /// The per-device lists of disk limits: the field's name, its entries as `major:minor` and rate.
    fn throttles(&self) -> Vec<(&'static str, Vec<(String, u64)>)> {
        let Some(block) = self.resources.block_io() else { return vec![] };
        let lists = [
            ("throttleReadBpsDevice", block.throttle_read_bps_device()),
            ("throttleWriteBpsDevice", block.throttle_write_bps_device()),
            ("throttleReadIOPSDevice", block.throttle_read_iops_device()),
            ("throttleWriteIOPSDevice", block.throttle_write_iops_device()),
        ];
        lists
            .into_iter()
            .map(|(name, list)| {
                let entries = list.iter().flatten().filter(|one| self.is_update || one.rate() > 0);
                (name, entries.map(|one| (format!("{}:{}", one.major(), one.minor()), one.rate())).collect())
            })
            .collect()
    }
}

/// The files of the cgroup v2 hierarchy that config.json names itself.
fn push_unified_files(resources: &LinuxResources, layout: &Layout, limits: &mut Limits) -> Result<()> {
    let mut list: Vec<_> = resources.unified().iter().flatten().collect();
    list.sort();
    for (file, text) in list {
        let place = format!("unified/{}", pointer::escape(file));
        let at = format!("/linux/resources/{place}");
        let (prefix, rest) = file.split_once('.').unwrap_or((file, ""));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if rest.is_empty() || !file.bytes().all(plain) {
            return Err(Error::new(Kind::Config, format!("`{file}` is not the name of a cgroup file"))
                .at(at)
                .help("write a controller, a dot and the rest, such as `memory.high`"));
        }
        if prefix == "cgroup" && !matches!(rest, "max.depth" | "max.descendants") {
            return Err(Error::new(Kind::Config, format!("`{file}` is not a limit")).at(at).help(
                "of the `cgroup.*` files, only `cgroup.max.depth` and `cgroup.max.descendants` can be set",
            ));
        }
        if layout.unified.is_none() {
            limits.push_unsupported(&place, "`unified` files", "1");
            continue;
        }
        let controller = match Controller::from_name(prefix) {
            // Files of the core are in every group, like those of the freezer.
            None if prefix == "cgroup" => Controller::Freezer,
            None => Controller::Misc,
            Some(controller) => controller,
        };
        let held_by_v1 = prefix != "cgroup" && layout.hierarchy(controller).is_some();
        if held_by_v1 || layout.version(controller).is_none() {
            let why = if held_by_v1 { "is mounted as cgroup v1" } else { "is not in this kernel" };
            let message = format!("the controller `{prefix}` {why}, so `{file}` does not exist");
            limits
                .unsupported
                .push(Error::new(Kind::Unenforceable, message).at(at).help(ALLOW_UNENFORCED_HELP));
            continue;
        }
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        for line in lines {
            limits.push_files(controller, &place, vec![(file.clone(), line.to_owned())]);
        }
    }
    Ok(())
}

fn no_controller(controller: Controller, place: &str) -> Error {
    let name = controller.name();
    Error::new(Kind::Unenforceable, format!("this kernel has no controller `{name}`, or it is disabled"))
        .at(place)
        .help(ALLOW_UNENFORCED_HELP)
}

#[cfg(test)]
mod tests;
