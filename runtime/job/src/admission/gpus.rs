//! GPUs in the ledger: which of them are taken, which are reserved for waiting jobs, and which a job gets.

use std::path::Path;

use jobc_schema::plan::{JobPlan, SharePlan};

use super::devices::{self, Held, Refused};
use super::ledger::{Entry, Standing};
use super::words;
use crate::record::Claim;
use jobc_gpu::demand::{Demand, Demands};
use jobc_gpu::lease::{Leased, Sharing, Slot};
use jobc_gpu::pins::short;
use jobc_gpu::placement::{self, Misfit, Room, Taken};
use jobc_gpu::{DeviceId, Inventory};
use jobc_sys::error::{Error, Kind};

/// Why a job has no GPUs.
#[derive(Debug)]
pub(super) enum Lack {
    /// No GPUs are available for it now; the reason as text.
    Now(String),
    /// Something is broken.
    Failed(Error),
}

/// Finds GPUs for a job next to the jobs before it, and locks them.
pub(super) fn find(
    directory: &Path,
    claim: &Claim,
    demands: &Demands,
    inventory: &Inventory,
    before: &[&Entry],
) -> Result<(Leased, Held), Lack> {
    let uid = rustix::process::geteuid().as_raw();
    let mut taken = taken(before, inventory);
    loop {
        let room = Room { inventory, taken: &taken, uid };
        let leased = placement::place(demands, room)
            .map_err(|misfit| Lack::Now(short_of(claim, demands, misfit, room, before)))?;
        match devices::hold(directory, &leased) {
            Ok(held) => return Ok((leased, held)),
            // Somebody decided at the same moment, or holds more than the ledger knows of.
            Err(Refused::Taken(device)) => taken.take(device),
            Err(Refused::Failed(error)) => return Err(Lack::Failed(error)),
        }
    }
}

/// The shortage of a job next to those before it, as text; nothing if there is room.
pub(super) fn lacks(
    claim: &Claim,
    demands: &Demands,
    inventory: &Inventory,
    before: &[&Entry],
    uid: u32,
) -> Option<String> {
    let taken = taken(before, inventory);
    let room = Room { inventory, taken: &taken, uid };
    let misfit = placement::place(demands, room).err()?;
    Some(short_of(claim, demands, misfit, room, before))
}

/// The GPUs of admitted jobs, and those reserved for waiting jobs: what they would get, or all that would match.
fn taken(before: &[&Entry], inventory: &Inventory) -> Taken {
    let mut taken = Taken::default();
    for entry in before {
        taken.add_all(&entry.claim.leased, entry.uid);
    }
    let mut waiting: Vec<&&Entry> =
        before.iter().filter(|entry| entry.standing == Standing::Waiting).collect();
    waiting.sort_by(|one, other| {
        if one.is_before(other) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
    });
    for entry in waiting {
        let room = Room { inventory, taken: &taken, uid: entry.uid };
        if let Ok(leased) = placement::place(&entry.demands, room) {
            taken.add_all(&leased, entry.uid);
            continue;
        }
        for demand in &entry.demands.roles {
            for device in placement::eligible(demand, inventory) {
                taken.take(device);
            }
        }
    }
    taken
}

/// Why a job can have its GPUs at no time.
pub(super) fn too_much(
    plan: &JobPlan,
    claim: &Claim,
    demands: &Demands,
    Misfit(place): Misfit,
    inventory: &Inventory,
) -> Error {
    let nothing = Taken::default();
    let room = Room { inventory, taken: &nothing, uid: 0 };
    let demand = &demands.roles[place];
    let kind = kind(demand);
    let message = if kind.is_empty() {
        let has = inventory
            .devices()
            .iter()
            .filter(|device| device.vendor == demand.vendor && device.mig.is_none())
            .count();
        format!("the job needs {}, this host has {has}", gpus(claim.gpus))
    } else {
        let of_role = all(demand);
        format!("`{}` needs {of_role}, this host has {}", demand.role, placement::room_for(demand, room))
    };
    let unknown = demand.soft().is_some_and(|(share, _)| share.memory_bytes.is_some())
        && placement::eligible(demand, inventory)
            .iter()
            .all(|card| inventory.gpu(*card).is_none_or(|gpu| gpu.memory_bytes.is_none()));
    if unknown && !inventory.gpus.is_empty() {
        let what = all(demand);
        let message = format!("`{}` needs {what}, and the memory size of the cards is unknown", demand.role);
        return Error::new(Kind::Unenforceable, message)
            .help("`jobc doctor` shows why NVML does not report it; or request a share of the cores only");
    }
    let there = there(inventory);
    let message =
        if there.is_empty() || kind.is_empty() { message } else { format!("{message}: it has {there}") };
    let most = u64::try_from(inventory.devices().len()).unwrap_or(u64::MAX);
    let fewer = super::fewer(plan, &[(super::Measure::Gpus, most.min(claim.gpus.saturating_sub(1)))]);
    let fewer = fewer.filter(|_| kind.is_empty() && most > 0);
    let ways: Vec<String> = fewer.into_iter().chain(["without GPUs with `--no-gpu`".to_owned()]).collect();
    Error::new(Kind::Unenforceable, message).help(format!("run {}", ways.join(", or ")))
}

/// What a job lacks: `needs 2 GPUs, and 1 of 8 is free: …`.
fn short_of(claim: &Claim, demands: &Demands, misfit: Misfit, room: Room<'_>, before: &[&Entry]) -> String {
    let demand = &demands.roles[misfit.0];
    let plain = demands.roles.iter().all(|demand| kind(demand).is_empty());
    let nothing = Taken::default();
    let free = placement::room_for(demand, room);
    let total = placement::room_for(demand, Room { taken: &nothing, ..room });
    let will_do = placement::eligible(demand, room.inventory);
    let needs = if plain {
        format!("needs {}, and {free} of {total} are free", gpus(claim.gpus))
    } else {
        format!("needs {} for `{}`, and {free} of {total} that match are free", all(demand), demand.role)
    };
    let holders: Vec<String> = before.iter().filter_map(|entry| holder(entry, &will_do)).take(3).collect();
    if holders.is_empty() { needs } else { format!("{needs}: {}", holders.join(", ")) }
}

/// What another has, or waits for, of devices that would do.
fn holder(entry: &Entry, will_do: &[DeviceId]) -> Option<String> {
    let owner = words::owner(entry);
    if entry.standing == Standing::Waiting {
        return asked(&entry.claim, &entry.demands).map(|what| format!("{owner} waits for {what}"));
    }
    let same_card = |slot: &&Slot| {
        let card = |device: DeviceId| (device.vendor, device.gpu);
        will_do.iter().any(|device| card(*device) == card(slot.device))
    };
    let slots: Vec<&Slot> = entry.claim.leased.slots.iter().filter(same_card).collect();
    (!slots.is_empty()).then(|| format!("{owner} has {}", devices_of(&slots)))
}

/// A job's GPU request, as text; nothing if it requests none.
pub(super) fn asked(claim: &Claim, demands: &Demands) -> Option<String> {
    let slices = demands.roles.iter().filter(|demand| demand.share.is_some()).map(all);
    let whole = (claim.gpus > 0).then(|| gpus(claim.gpus));
    let parts: Vec<String> = whole.into_iter().chain(slices).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// `GPU 3`, `GPUs 0, 1`, `a slice of GPU 2`.
fn devices_of(slots: &[&Slot]) -> String {
    let is_slice = |slot: &&&Slot| slot.slice.as_ref().is_some_and(|slice| slice.by != Sharing::Mig);
    let mut names: Vec<String> = slots.iter().map(|slot| short(slot.device)).collect();
    names.dedup();
    let word = if names.len() == 1 { "GPU" } else { "GPUs" };
    let of = if slots.iter().all(|slot| is_slice(&slot)) { "slices of " } else { "" };
    format!("{of}{word} {}", names.join(", "))
}

fn gpus(count: u64) -> String {
    super::Measure::Gpus.shown(count)
}

/// All that a role asks for: `2 GPUs of model A100`, `4 slices of 8 GiB`.
fn all(demand: &Demand) -> String {
    let count = demand.total();
    match &demand.share {
        Some((share, _)) => {
            let word = if count == 1 { "slice" } else { "slices" };
            format!("{count} {word}{}{}", of_share(share), kind(demand).trim_start_matches(" slice"))
        }
        None => format!("{}{}", gpus(count), kind(demand)),
    }
}

fn of_share(share: &SharePlan) -> String {
    let memory = share.memory_bytes.map(|bytes| super::Measure::Memory.number(bytes));
    let cores = share.cores_percent.map(|percent| format!("{percent} % of the cores"));
    let profile = share.profile.clone();
    let parts: Vec<String> = [memory, cores, profile].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" of {}", parts.join(" and ")) }
}

/// A demand's restrictions on devices; empty if any device of the vendor matches.
fn kind(demand: &Demand) -> String {
    let models = demand.models.iter().map(|model| format!("`{model}`")).collect::<Vec<_>>().join(" or ");
    let mut parts = Vec::new();
    if !models.is_empty() {
        parts.push(format!("of model {models}"));
    }
    if let Some(bytes) = demand.memory_bytes {
        parts.push(format!("with {} each", super::Measure::Memory.number(bytes)));
    }
    if let Some((major, minor)) = demand.compute_capability {
        parts.push(format!("of compute capability {major}.{minor}"));
    }
    if let Some(driver) = &demand.driver {
        parts.push(format!("with driver {driver}"));
    }
    if !demand.pins.is_empty() {
        let pins: Vec<String> = demand.pins.iter().map(|device| short(*device)).collect();
        parts.push(format!("among {}", pins.join(", ")));
    }
    match (&demand.share, parts.is_empty()) {
        (Some(_), true) => " slice".to_owned(),
        (_, true) => String::new(),
        _ => format!(" {}", parts.join(", ")),
    }
}

/// What the host has: `4 NVIDIA A100-SXM4-80GB, 2 Tesla T4 (cut up: 7 of 1g.10gb)`.
fn there(inventory: &Inventory) -> String {
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
pub(super) fn notes(leased: &Leased, inventory: &Inventory) -> Vec<String> {
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
            short(slot.device)
        ))
    });
    used.collect()
}
