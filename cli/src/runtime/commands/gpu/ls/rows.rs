//! The rows of `jobc gpu ls`: one per card, followed by one per MIG instance.

use jobc_gpu::{CardState, DeviceId, Gpu, Inventory, LinkType, MigDevice};
use jobc_job::admission::overview::Lease;

use crate::runtime::quantity::bytes;
use crate::table::Table;

/// Shown for unknown or absent values.
const PLACEHOLDER: &str = "-";

/// A card, with all that its cells tell.
struct Card<'a> {
    inventory: &'a Inventory,
    leases: &'a [Lease],
    gpu: &'a Gpu,
}

/// A column: its heading, and its cell of a card.
type Column = (&'static str, fn(&Card<'_>) -> String);

/// The column whose cell an MIG instance has, too, besides the first four.
const JOBS: Column = ("JOBS", |card| jobs(card.leases, device_id(card.gpu)));

const SHORT: [Column; 8] = [
    ("GPU", number),
    ("UUID", |card| uuid(card.gpu.uuid.as_deref())),
    ("NAME", |card| name(card.gpu)),
    ("MEMORY", |card| memory(card.gpu)),
    ("CC", |card| compute(card.gpu)),
    ("NUMA", |card| node(card.gpu)),
    JOBS,
    ("PROCESSES", |card| processes(card.gpu)),
];

const WIDE: [Column; 18] = [
    SHORT[0],
    ("UUID", |card| or_placeholder(card.gpu.uuid.clone())),
    SHORT[2],
    SHORT[3],
    SHORT[4],
    SHORT[5],
    ("PCI", |card| or_placeholder(card.gpu.pci.clone())),
    ("LINKS", |card| links(card.gpu)),
    ("TEMP", |card| or_placeholder(card.gpu.state.temperature.map(|degrees| format!("{degrees} °C")))),
    ("FAN", |card| or_placeholder(card.gpu.state.fan_percent.map(|percent| format!("{percent} %")))),
    ("POWER", |card| power(&card.gpu.state)),
    ("CLOCKS", |card| clocks(&card.gpu.state)),
    ("ECC", |card| ecc(&card.gpu.state)),
    ("COMPUTE MODE", |card| or_placeholder(card.gpu.state.compute_mode.clone())),
    ("PERSISTENCE", |card| or_placeholder(card.gpu.state.persistence.map(on_or_off))),
    ("MIG", |card| or_placeholder(card.gpu.mig.as_ref().map(|mig| on_or_off(mig.enabled)))),
    JOBS,
    SHORT[7],
];

/// All columns, or those that identify cards.
pub(super) fn table(inventory: &Inventory, leases: &[Lease], is_wide: bool) -> Table {
    let columns = if is_wide { &WIDE[..] } else { &SHORT };
    let mut table = Table::new(columns.iter().map(|(heading, _)| *heading));
    for gpu in &inventory.gpus {
        let card = Card { inventory, leases, gpu };
        table.row(columns.iter().map(|(_, cell)| cell(&card)));
        for instance in instances(gpu) {
            let device = DeviceId { mig: Some(instance.index), ..device_id(gpu) };
            let own = of_instance(gpu, instance, !is_wide);
            table.row(columns.iter().enumerate().map(|(place, (heading, _))| match own.get(place) {
                Some(cell) => cell.clone(),
                None if *heading == JOBS.0 => jobs(leases, device),
                None => String::new(),
            }));
        }
    }
    table
}

/// Its number, with the vendor if there are several.
fn number(Card { inventory, gpu, .. }: &Card<'_>) -> String {
    if inventory.gpus.iter().all(|other| other.vendor == gpu.vendor) {
        return gpu.index.to_string();
    }
    format!("{} {}", gpu.vendor.as_str(), gpu.index)
}

fn name(gpu: &Gpu) -> String {
    let cut_up = gpu.mig.as_ref().is_some_and(|mig| mig.enabled);
    if cut_up { format!("{} (MIG)", gpu.name) } else { gpu.name.clone() }
}

/// The first part of a UUID, which is unique for the cards of a host.
fn uuid(uuid: Option<&str>) -> String {
    let Some(uuid) = uuid else { return PLACEHOLDER.to_owned() };
    let mut parts = uuid.splitn(3, '-');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(kind), Some(first), Some(_)) => format!("{kind}-{first}…"),
        _ => uuid.to_owned(),
    }
}

/// Used and total: `512 MiB / 80 GiB`.
fn memory(gpu: &Gpu) -> String {
    match (gpu.memory_used, gpu.memory_bytes) {
        (Some(used), Some(all)) => format!("{} / {}", bytes(used), bytes(all)),
        (None, Some(all)) => bytes(all),
        _ => PLACEHOLDER.to_owned(),
    }
}

fn compute(gpu: &Gpu) -> String {
    gpu.compute_capability.map_or_else(|| PLACEHOLDER.to_owned(), |(major, minor)| format!("{major}.{minor}"))
}

fn node(gpu: &Gpu) -> String {
    gpu.numa_node.map_or_else(|| PLACEHOLDER.to_owned(), |node| node.to_string())
}

fn or_placeholder(text: Option<String>) -> String {
    text.unwrap_or_else(|| PLACEHOLDER.to_owned())
}

fn on_or_off(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

/// Draw and limit: `71 / 700 W`.
fn power(state: &CardState) -> String {
    let watts = |milliwatts: Option<u32>| milliwatts.map(|milliwatts| (milliwatts + 500) / 1000);
    match (watts(state.power_milliwatts), watts(state.power_limit_milliwatts)) {
        (Some(draw), Some(limit)) => format!("{draw} / {limit} W"),
        (Some(draw), None) => format!("{draw} W"),
        (None, Some(limit)) => format!("{PLACEHOLDER} / {limit} W"),
        (None, None) => PLACEHOLDER.to_owned(),
    }
}

/// Processors and memory: `1980 / 2619 MHz`.
fn clocks(state: &CardState) -> String {
    match (state.graphics_clock_mhz, state.memory_clock_mhz) {
        (None, None) => PLACEHOLDER.to_owned(),
        (graphics, memory) => {
            let clock = |clock: Option<u32>| or_placeholder(clock.map(|mhz| mhz.to_string()));
            format!("{} / {} MHz", clock(graphics), clock(memory))
        }
    }
}

/// Whether it is on, and the errors that were not corrected: `on, 0 errors`.
fn ecc(state: &CardState) -> String {
    match (state.ecc, state.ecc_uncorrected_errors) {
        (Some(true), Some(1)) => "on, 1 error".to_owned(),
        (Some(true), Some(errors)) => format!("on, {errors} errors"),
        (ecc, _) => or_placeholder(ecc.map(on_or_off)),
    }
}

/// The nearest links to other cards, with their numbers: `NVLink×18 1-7`.
fn links(gpu: &Gpu) -> String {
    let mut ways: Vec<(LinkType, Vec<u32>)> = vec![];
    for link in &gpu.links {
        match ways.iter_mut().find(|(way, _)| *way == link.by) {
            Some((_, cards)) => cards.push(link.to),
            None => ways.push((link.by, vec![link.to])),
        }
    }
    // More NVLinks are nearer.
    ways.sort_by_key(|(way, _)| match way {
        LinkType::Nvlink(count) => (LinkType::Nvlink(0), u32::MAX - count),
        way => (*way, 0),
    });
    let words: Vec<String> =
        ways.iter().map(|(way, cards)| format!("{} {}", link_name(*way), ranges(cards))).collect();
    if words.is_empty() { PLACEHOLDER.to_owned() } else { words.join(", ") }
}

fn link_name(way: LinkType) -> String {
    match way {
        LinkType::Nvlink(count) => return format!("link×{count}"),
        LinkType::Switch => "switch",
        LinkType::Switches => "switches",
        LinkType::Bridge => "bridge",
        LinkType::Node => "node",
        LinkType::System => "system",
    }
    .to_owned()
}

/// Sorted numbers as ranges: `0-3,5`.
fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = vec![];
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let word = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(word).collect::<Vec<_>>().join(",")
}

/// A card as a device that can be assigned.
fn device_id(gpu: &Gpu) -> DeviceId {
    DeviceId { vendor: gpu.vendor, gpu: gpu.index, mig: None }
}

/// The jobs that have a device, or slices of it: `train.2`.
fn jobs(leases: &[Lease], device: DeviceId) -> String {
    let mut jobs: Vec<&str> =
        leases.iter().filter(|lease| lease.device == device).map(|lease| lease.job.as_str()).collect();
    jobs.dedup();
    if jobs.is_empty() { PLACEHOLDER.to_owned() } else { jobs.join(", ") }
}

/// The processes that use it: `python3 (4711), ollama (99)`.
fn processes(gpu: &Gpu) -> String {
    let word = |process: &jobc_gpu::Process| match &process.name {
        Some(name) => format!("{name} ({})", process.pid),
        None => process.pid.to_string(),
    };
    let words: Vec<String> = gpu.processes.iter().map(word).collect();
    if words.is_empty() { PLACEHOLDER.to_owned() } else { words.join(", ") }
}

fn instances(gpu: &Gpu) -> &[MigDevice] {
    gpu.mig.as_ref().map_or(&[], |mig| &mig.devices)
}

/// The first columns of a MIG instance.
fn of_instance(gpu: &Gpu, instance: &MigDevice, is_short: bool) -> [String; 4] {
    let whole = instance.uuid.as_deref();
    [
        format!("  {}:{}", gpu.index, instance.index),
        if is_short { uuid(whole) } else { or_placeholder(whole.map(str::to_owned)) },
        or_placeholder(instance.profile.clone()),
        or_placeholder(instance.memory_bytes.map(bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn unknown_values_are_shown_as_a_dash() {
        let none = CardState::default();
        assert_eq!([power(&none), clocks(&none), ecc(&none)], ["-", "-", "-"]);
        let some = CardState {
            power_milliwatts: Some(71_400),
            graphics_clock_mhz: Some(1980),
            ecc: Some(true),
            ecc_uncorrected_errors: Some(1),
            ..none
        };
        assert_eq!([power(&some), clocks(&some), ecc(&some)], ["71 W", "1980 / - MHz", "on, 1 error"]);
    }

    #[test]
    fn the_nearest_link_is_listed_first() {
        let link = |to, by| jobc_gpu::Link { to, by };
        let links_ = vec![
            link(1, LinkType::Bridge),
            link(2, LinkType::Nvlink(1)),
            link(3, LinkType::Nvlink(2)),
            link(4, LinkType::Nvlink(2)),
        ];
        let gpu = Gpu { links: links_, ..Gpu::default() };
        assert_eq!(links(&gpu), "link×2 3-4, link×1 2, bridge 1");
    }

    #[test]
    fn a_uuid_is_cut_after_its_first_part() {
        assert_eq!(uuid(Some("GPU-8a56a4bc-d184-a047-2620-be19fdd913d5")), "GPU-8a56a4bc…");
        assert_eq!(uuid(Some("GPU-009c5c0000000001")), "GPU-009c5c0000000001");
        assert_eq!(uuid(None), "-");
    }
}
