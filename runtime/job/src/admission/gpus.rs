//! GPUs in the ledger: which of them are taken, which are reserved for waiting jobs, and which a job gets.

use std::path::Path;

use jobc_schema::plan::{JobPlan, SharePlan};

use super::devices::{self, DeviceLocks, LockError};
use super::ledger::{Entry, EntryState};
use crate::record::Claim;
use jobc_gpu::demand::{Demand, Demands};
use jobc_gpu::device_names::short_name;
use jobc_gpu::lease::{GpuLease, Sharing, Slot};
use jobc_gpu::placement::{self, DeviceUsage, FreeDevices, PlacementError};
use jobc_gpu::{DeviceId, Inventory};
use jobc_sys::error::{Error, Kind};

/// Why a job has no GPUs.
#[derive(Debug)]
pub(super) enum Shortage {
    /// No GPUs are available for it now; the reason as text.
    NotFree(String),
    /// Something is broken.
    Failed(Error),
}

/// Finds GPUs for a job next to the jobs before it, and locks them.
pub(super) fn find_and_lock(
    directory: &Path,
    claim: &Claim,
    demands: &Demands,
    inventory: &Inventory,
    before: &[&Entry],
) -> Result<(GpuLease, DeviceLocks), Shortage> {
    let uid = rustix::process::geteuid().as_raw();
    let mut taken = devices_taken_by(before, inventory);
    loop {
        let room = FreeDevices { inventory, usage: &taken, uid };
        let leased = placement::place(demands, room)
            .map_err(|misfit| Shortage::NotFree(shortage_message(claim, demands, misfit, room, before)))?;
        match devices::lock_devices(directory, &leased) {
            Ok(held) => return Ok((leased, held)),
            // Another job decided at the same moment, or holds more than the ledger records.
            Err(LockError::Taken(device)) => taken.add_device(device),
            Err(LockError::Failed(error)) => return Err(Shortage::Failed(error)),
        }
    }
}

/// The same for a job that grows: besides what it asks for, GPUs that none of `all` has or waits for.
pub(super) fn find_and_lock_more(
    directory: &Path,
    claim: &Claim,
    demands: &Demands,
    inventory: &Inventory,
    all: &[&Entry],
) -> Option<(GpuLease, DeviceLocks)> {
    demands.grown().find_map(|grown| find_and_lock(directory, claim, &grown, inventory, all).ok())
}

/// The first job that waits and would have its GPUs if a job had only those that it asked for.
pub(super) fn first_helped<'a>(
    own: &Entry,
    entries: &'a [Entry],
    inventory: &Inventory,
) -> Option<&'a Entry> {
    let others = entries.iter().filter(|entry| !entry.is_same_request(own));
    let mut taken = DeviceUsage::default();
    let mut waiting = Vec::new();
    for entry in others {
        match entry.state {
            EntryState::Admitted => taken.add_lease(&entry.claim.leased, entry.uid),
            EntryState::Waiting if !entry.demands.is_empty() => waiting.push(entry),
            EntryState::Waiting | EntryState::Entered => {}
        }
    }
    let room = FreeDevices { inventory, usage: &taken, uid: own.uid };
    if let Ok(leased) = placement::place(&own.demands, room) {
        taken.add_lease(&leased, own.uid);
    }
    waiting.into_iter().find(|entry| {
        let room = FreeDevices { inventory, usage: &taken, uid: entry.uid };
        placement::place(&entry.demands, room).is_ok()
    })
}

/// The GPUs that a job lacks after the jobs before it, as text; `None` if it fits.
pub(super) fn describe_shortage(
    claim: &Claim,
    demands: &Demands,
    inventory: &Inventory,
    before: &[&Entry],
    uid: u32,
) -> Option<String> {
    let taken = devices_taken_by(before, inventory);
    let room = FreeDevices { inventory, usage: &taken, uid };
    let misfit = placement::place(demands, room).err()?;
    Some(shortage_message(claim, demands, misfit, room, before))
}

/// The GPUs of admitted jobs, and those reserved for waiting jobs: what they would get, or all that would match.
fn devices_taken_by(before: &[&Entry], inventory: &Inventory) -> DeviceUsage {
    let mut taken = DeviceUsage::default();
    for entry in before {
        taken.add_lease(&entry.claim.leased, entry.uid);
    }
    for entry in before.iter().filter(|entry| entry.state == EntryState::Waiting) {
        let room = FreeDevices { inventory, usage: &taken, uid: entry.uid };
        if let Ok(leased) = placement::place(&entry.demands, room) {
            taken.add_lease(&leased, entry.uid);
            continue;
        }
        for demand in &entry.demands.roles {
            for device in placement::eligible(demand, inventory) {
                taken.add_device(device);
            }
        }
    }
    taken
}

/// Why a job can never get its GPUs.
pub(super) fn exceeds_host_error(
    plan: &JobPlan,
    claim: &Claim,
    demands: &Demands,
    PlacementError(place): PlacementError,
    inventory: &Inventory,
) -> Error {
    let nothing = DeviceUsage::default();
    let room = FreeDevices { inventory, usage: &nothing, uid: 0 };
    let demand = &demands.roles[place];
    let kind = describe_constraints(demand);
    let message = if kind.is_empty() {
        let has = inventory
            .devices()
            .iter()
            .filter(|device| device.vendor == demand.vendor && device.mig.is_none())
            .count();
        format!("the job needs {}, this host has {has}", format_gpus(claim.gpus))
    } else {
        let of_role = describe_demand(demand);
        format!(
            "`{}` needs {of_role}, this host has {}",
            demand.role,
            placement::count_available(demand, room)
        )
    };
    let unknown = demand.soft_share().is_some_and(|(share, _)| share.memory_bytes.is_some())
        && placement::eligible(demand, inventory)
            .iter()
            .all(|card| inventory.gpu(*card).is_none_or(|gpu| gpu.memory_bytes.is_none()));
    if unknown && !inventory.gpus.is_empty() {
        let what = describe_demand(demand);
        let message = format!("`{}` needs {what}, and the memory size of the cards is unknown", demand.role);
        return Error::new(Kind::Unenforceable, message)
            .help("`jobc doctor` shows why NVML does not report it; or request a share of the cores only");
    }
    let there = describe_inventory(inventory);
    let message =
        if there.is_empty() || kind.is_empty() { message } else { format!("{message}: it has {there}") };
    let max = u64::try_from(inventory.devices().len()).unwrap_or(u64::MAX);
    let fewer = super::scale_hint(plan, &[(super::Resource::Gpus, max.min(claim.gpus.saturating_sub(1)))]);
    let fewer = fewer.filter(|_| kind.is_empty() && max > 0);
    let ways: Vec<String> = fewer.into_iter().chain(["without GPUs with `--no-gpu`".to_owned()]).collect();
    Error::new(Kind::Unenforceable, message).help(format!("run {}", ways.join(", or ")))
}

/// What a job lacks: `needs 2 GPUs, and 1 of 8 is free: …`.
fn shortage_message(
    claim: &Claim,
    demands: &Demands,
    misfit: PlacementError,
    room: FreeDevices<'_>,
    before: &[&Entry],
) -> String {
    let demand = &demands.roles[misfit.0];
    let plain = demands.roles.iter().all(|demand| describe_constraints(demand).is_empty());
    let nothing = DeviceUsage::default();
    let free = placement::count_available(demand, room);
    let total = placement::count_available(demand, FreeDevices { usage: &nothing, ..room });
    let will_do = placement::eligible(demand, room.inventory);
    let needs = if plain {
        format!("needs {}, and {free} of {total} are free", format_gpus(claim.gpus))
    } else {
        format!(
            "needs {} for `{}`, and {free} of {total} that match are free",
            describe_demand(demand),
            demand.role
        )
    };
    let holders: Vec<String> =
        before.iter().filter_map(|entry| describe_holder(entry, &will_do)).take(3).collect();
    if holders.is_empty() { needs } else { format!("{needs}: {}", holders.join(", ")) }
}

/// What another has, or waits for, of devices that would do.
fn describe_holder(entry: &Entry, will_do: &[DeviceId]) -> Option<String> {
    let owner = entry.owner();
    if entry.state == EntryState::Waiting {
        return describe_request(&entry.claim, &entry.demands)
            .map(|what| format!("{owner} waits for {what}"));
    }
    let same_card = |slot: &&Slot| {
        let card = |device: DeviceId| (device.vendor, device.gpu);
        will_do.iter().any(|device| card(*device) == card(slot.device))
    };
    let slots: Vec<&Slot> = entry.claim.leased.slots.iter().filter(same_card).collect();
    (!slots.is_empty()).then(|| format!("{owner} has {}", describe_slots(&slots)))
}

/// A job's GPU request, as text; `None` if it requests no GPU.
pub(super) fn describe_request(claim: &Claim, demands: &Demands) -> Option<String> {
    let slices = demands.roles.iter().filter(|demand| demand.share.is_some()).map(describe_demand);
    let whole = (claim.gpus > 0).then(|| format_gpus(claim.gpus));
    let parts: Vec<String> = whole.into_iter().chain(slices).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// `GPU 3`, `GPUs 0, 1`, `a slice of GPU 2`.
fn describe_slots(slots: &[&Slot]) -> String {
    let is_slice = |slot: &&&Slot| slot.slice.as_ref().is_some_and(|slice| slice.by != Sharing::Mig);
    let mut names: Vec<String> = slots.iter().map(|slot| short_name(slot.device)).collect();
    names.dedup();
    let word = if names.len() == 1 { "GPU" } else { "GPUs" };
    let of = if slots.iter().all(|slot| is_slice(&slot)) { "slices of " } else { "" };
    let in_turns = |slot: &&Slot| slot.slice.as_ref().filter(|slice| slice.by == Sharing::Time)?.memory_bytes;
    match slots.iter().map(in_turns).min().flatten() {
        Some(bytes) => {
            let memory = super::Resource::Memory.format_number(bytes);
            format!("{memory} of {word} {} in turns", names.join(", "))
        }
        None => format!("{of}{word} {}", names.join(", ")),
    }
}

fn format_gpus(count: u64) -> String {
    super::Resource::Gpus.format_amount(count)
}

/// A role's GPU request: `2 GPUs of model A100`, `4 slices of 8 GiB`.
fn describe_demand(demand: &Demand) -> String {
    let count = demand.total();
    match &demand.share {
        Some((share, Sharing::Time)) => {
            let constraints = describe_constraints(demand);
            let of = describe_share(share);
            format!("{}{} in turns{}", format_gpus(count), of, constraints.trim_start_matches(" slice"))
        }
        Some((share, _)) => {
            let word = if count == 1 { "slice" } else { "slices" };
            format!(
                "{count} {word}{}{}",
                describe_share(share),
                describe_constraints(demand).trim_start_matches(" slice")
            )
        }
        None => format!("{}{}", format_gpus(count), describe_constraints(demand)),
    }
}

fn describe_share(share: &SharePlan) -> String {
    let memory = share.memory_bytes.map(|bytes| super::Resource::Memory.format_number(bytes));
    let cores = share.cores_percent.map(|percent| format!("{percent} % of the cores"));
    let profile = share.profile.clone();
    let parts: Vec<String> = [memory, cores, profile].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" of {}", parts.join(" and ")) }
}

/// A demand's restrictions on devices; empty if any device of the vendor matches.
fn describe_constraints(demand: &Demand) -> String {
    let models = demand.models.iter().map(|model| format!("`{model}`")).collect::<Vec<_>>().join(" or ");
    let mut parts = Vec::new();
    if !models.is_empty() {
        parts.push(format!("of model {models}"));
    }
    if let Some(bytes) = demand.memory_bytes {
        parts.push(format!("with {} each", super::Resource::Memory.format_number(bytes)));
    }
    if let Some((major, minor)) = demand.compute_capability {
        parts.push(format!("of compute capability {major}.{minor}"));
    }
    if let Some(driver) = &demand.driver {
        parts.push(format!("with driver {driver}"));
    }
    if !demand.pins.is_empty() {
        let pins: Vec<String> = demand.pins.iter().map(|device| short_name(*device)).collect();
        parts.push(format!("among {}", pins.join(", ")));
    }
    match (&demand.share, parts.is_empty()) {
        (Some(_), true) => " slice".to_owned(),
        (_, true) => String::new(),
        _ => format!(" {}", parts.join(", ")),
    }
}

/// What the host has: `4 NVIDIA A100-SXM4-80GB, 2 Tesla T4 (cut up: 7 of 1g.10gb)`.
fn describe_inventory(inventory: &Inventory) -> String {
    let mut names: Vec<(String, usize)> = Vec::new();
    for gpu in &inventory.gpus {
        let cut = gpu.mig.as_ref().filter(|mig| mig.enabled).map(|mig| {
            let profiles = mig.devices.iter().filter_map(|device| device.profile.as_deref());
            let mut profiles: Vec<&str> = profiles.collect();
            profiles.sort_unstable();
            if profiles.is_empty() {
                " partitioned".to_owned()
            } else {
                format!(" partitioned into {}", profiles.join(", "))
            }
        });
        let name = format!("{}{}", gpu.name, cut.unwrap_or_default());
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    names.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Notes on a job's cards for the user: programs that use them outside of jobs.
pub(super) fn notes(leased: &GpuLease, inventory: &Inventory) -> Vec<String> {
    let whole = leased.slots.iter().filter(|slot| slot.slice.is_none());
    let used = whole.filter_map(|slot| {
        let gpu = inventory.gpu(slot.device).filter(|_| slot.device.mig.is_none())?;
        let process = gpu.processes.first()?;
        let name = process.name.as_deref().unwrap_or("a program");
        let more = gpu.processes.len() - 1;
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let pid = process.pid;
        Some(format!(
            "GPU {} is used by {name} (process {pid}){more}, which is not a task of a job",
            short_name(slot.device)
        ))
    });
    used.collect()
}
