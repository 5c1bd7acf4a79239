use indexmap::IndexMap;
use insta::assert_snapshot;
use jobc_schema::plan::JobPlan;
use jobc_schema::plan::order::RoleOrder;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::demand::Choices;
use crate::device_names::short_name;
use crate::inventory::Gpu;
use crate::sharing::SharingSupport;
use crate::testing::{card, host, partition};
use jobc_fake_gpus::plan as sample;
use jobc_nvml::Process;

const GIB: u64 = 1 << 30;

/// A plan of roles: name, instances, and the rest of the role with its `gpu` among the resources.
fn plan(roles: &[(&str, u32, Value)]) -> JobPlan {
    let roles: Vec<Value> = roles
        .iter()
        .map(|(name, instances, gpu)| {
            let mut whole = json!({"count": 1, "first": 0, "vendor": "nvidia"});
            let mut role = json!({"name": name, "instances": instances});
            for (key, value) in gpu.as_object().unwrap() {
                match key.as_str() {
                    "parallel" | "needs" | "matrix" => role[key] = value.clone(),
                    "share" => {
                        whole["share"] = json!({"isolation": "soft", "same_card": false});
                        value
                            .as_object()
                            .unwrap()
                            .iter()
                            .for_each(|(key, value)| whole["share"][key] = value.clone());
                    }
                    _ => whole[key] = value.clone(),
                }
            }
            role["resources"] = json!({"gpu": whole});
            role
        })
        .collect();
    sample::plan(&json!({"roles": roles}))
}

fn needs(role: &str, min: u32) -> Value {
    json!([{"role": role, "state": "succeeded", "min": min}])
}

fn means() -> SharingSupport {
    SharingSupport {
        mps: Some("/usr/bin/nvidia-cuda-mps-control".into()),
        has_mig: true,
        has_whole_cards: true,
        ..SharingSupport::default()
    }
}

fn demands(roles: &[(&str, u32, Value)], pins: &[&str], inventory: &Inventory) -> Demands {
    let mut devices = IndexMap::new();
    if !pins.is_empty() {
        devices.insert("*".to_owned(), pins.iter().map(|pin| (*pin).to_owned()).collect());
    }
    let choices = Choices { devices: &devices, share: None, allow_unenforced: false, injection: None };
    Demands::of(&plan(roles), choices, inventory, &means()).unwrap()
}

/// The devices of each seat: `a-0: 0 1; a-1: 2 3`; slices by their memory and cores.
fn shown(leased: &GpuLease) -> String {
    let slot = |slot: &Slot| {
        let slice = slot.slice.as_ref().filter(|slice| slice.by != Sharing::Mig).map(|slice| {
            let memory = slice.memory_bytes.map(|bytes| format!("{}G", bytes / GIB));
            let cores = slice.cores_percent.map(|percent| format!("{percent}%"));
            format!("({})", memory.into_iter().chain(cores).collect::<Vec<_>>().join(" "))
        });
        format!("{}{}", short_name(slot.device), slice.unwrap_or_default())
    };
    let seat = |seat: &DeviceSet| {
        let slots: Vec<String> = leased.slots_of(seat).map(slot).collect();
        format!("{}-{}: {}", seat.role, seat.number, slots.join(" "))
    };
    leased.seats.iter().map(seat).collect::<Vec<_>>().join("; ")
}

fn placed_beside(taken: &DeviceUsage, inventory: &Inventory, roles: &[(&str, u32, Value)]) -> String {
    match place(&demands(roles, &[], inventory), FreeDevices { inventory, usage: taken, uid: 0 }) {
        Ok(leased) => shown(&leased),
        Err(PlacementError(place)) => format!("no room for {}", roles[place].0),
    }
}

fn placed(inventory: &Inventory, roles: &[(&str, u32, Value)]) -> String {
    placed_beside(&DeviceUsage::default(), inventory, roles)
}

fn without(devices: &[u32]) -> DeviceUsage {
    let mut taken = DeviceUsage::default();
    for &gpu in devices {
        taken.add_device(DeviceId { vendor: jobc_schema::gpu::Vendor::Nvidia, gpu, mig: None });
    }
    taken
}

#[test]
fn combinations_that_take_turns_have_the_gpus_of_those_that_run_at_once() {
    let machine = host(&[&[0, 1, 2, 3]]);
    let role = |number: u32, max: Option<u32>, count: u32| {
        let matrix = json!({"role": "t", "number": number, "values": {"x": number}, "max_parallel": max});
        json!({"matrix": matrix, "count": count, "first": number})
    };
    let all = |max: Option<u32>, counts: [u32; 3]| {
        placed(
            &machine,
            &[
                ("t-m0", 1, role(0, max, counts[0])),
                ("t-m1", 1, role(1, max, counts[1])),
                ("t-m2", 1, role(2, max, counts[2])),
            ],
        )
    };
    assert_eq!(all(None, [1, 1, 1]), "t-m0-0: 0; t-m1-0: 1; t-m2-0: 2");
    assert_eq!(all(Some(2), [2, 2, 2]), "t-0: 0 1; t-1: 2 3");
    assert_eq!(all(Some(8), [1, 1, 1]), "t-0: 0; t-1: 1; t-2: 2");
    // Those that ask for different GPUs have their own.
    assert_eq!(all(Some(1), [1, 1, 2]), "t-m0-0: 2; t-m1-0: 3; t-m2-0: 0 1");
}

#[test]
fn linked_cards_are_assigned_together() {
    let four_and_four = host(&[&[0, 2, 4, 6], &[1, 3, 5, 7]]);
    let pair_and_four = host(&[&[0, 1, 2, 3], &[4, 5], &[6]]);
    let count = |count: u32| [("a", 1, json!({ "count": count }))];
    let mut out = String::new();
    for wanted in 1..=7 {
        out += &format!("{wanted} of 4, 2, 1: {}\n", placed(&pair_and_four, &count(wanted)));
    }
    out += &format!("4 of 4, 4: {}\n", placed(&four_and_four, &count(4)));
    out += &format!("4 of 3, 4: {}\n", placed_beside(&without(&[2]), &four_and_four, &count(4)));
    out += &format!("2 of 3, 4: {}\n", placed_beside(&without(&[2]), &four_and_four, &count(2)));
    out += &format!("8 of 3, 4: {}\n", placed_beside(&without(&[2]), &four_and_four, &count(8)));
    // The tasks of a role are near each other, and a task's own devices nearer.
    out += &format!("4 tasks of 1: {}\n", placed(&pair_and_four, &[("a", 4, json!({}))]));
    out += &format!("2 tasks of 2: {}\n", placed(&four_and_four, &[("a", 2, json!({"count": 2}))]));
    out += &format!("2 tasks of 3: {}\n", placed(&four_and_four, &[("a", 2, json!({"count": 3}))]));
    assert_snapshot!(out, @r"
    1 of 4, 2, 1: a-0: 6
    2 of 4, 2, 1: a-0: 4 5
    3 of 4, 2, 1: a-0: 0 1 2
    4 of 4, 2, 1: a-0: 0 1 2 3
    5 of 4, 2, 1: a-0: 0 1 2 3 6
    6 of 4, 2, 1: a-0: 0 1 2 3 4 5
    7 of 4, 2, 1: a-0: 0 1 2 3 4 5 6
    4 of 4, 4: a-0: 0 2 4 6
    4 of 3, 4: a-0: 1 3 5 7
    2 of 3, 4: a-0: 0 4
    8 of 3, 4: no room for a
    4 tasks of 1: a-0: 0; a-1: 1; a-2: 2; a-3: 3
    2 tasks of 2: a-0: 0 2; a-1: 4 6
    2 tasks of 3: a-0: 0 2 4; a-1: 1 3 6
    ");
}

#[test]
fn many_cards_are_not_looked_at_in_all_sets() {
    let groups: Vec<Vec<u32>> = (0..4).map(|group| (group * 8..group * 8 + 8).collect()).collect();
    let groups: Vec<&[u32]> = groups.iter().map(Vec::as_slice).collect();
    let large = host(&groups);
    assert_eq!(
        placed_beside(&without(&[0, 1, 9]), &large, &[("a", 1, json!({"count": 7}))]),
        "a-0: 8 10 11 12 13 14 15"
    );
    assert_eq!(placed(&large, &[("a", 33, json!({}))]), "no room for a");
}

#[test]
fn cards_that_others_use_come_last() {
    let mut inventory = host(&[&[0], &[1], &[2]]);
    inventory.gpus[0].processes.push(Process { pid: 7, name: None, memory_bytes: None });
    assert_eq!(placed(&inventory, &[("a", 1, json!({}))]), "a-0: 1");
    assert_eq!(placed(&inventory, &[("a", 1, json!({"count": 3}))]), "a-0: 0 1 2");
}

#[test]
fn numa_nodes_count_where_no_links_are_known() {
    let mut inventory = host(&[&[0, 1, 2, 3]]);
    for (gpu, node) in inventory.gpus.iter_mut().zip([0, 1, 1, 0]) {
        gpu.links.clear();
        gpu.numa_node = Some(node);
    }
    assert_eq!(placed(&inventory, &[("a", 2, json!({"count": 2}))]), "a-0: 0 3; a-1: 1 2");
}

#[test]
fn only_matching_cards_are_used() {
    let mut inventory = host(&[&[0, 1, 2]]);
    inventory.gpus[1] =
        Gpu { name: "NVIDIA H100 PCIe".to_owned(), compute_capability: Some((9, 0)), ..card(1) };
    inventory.gpus[2].memory_bytes = Some(40 * GIB);
    inventory.gpus[2].name = "NVIDIA A100-SXM4-40GB".to_owned();
    let mut out = String::new();
    for gpu in [
        json!({"models": ["H100"]}),
        json!({"models": ["h200", "A100"], "count": 2}),
        json!({"models": ["A100"], "count": 3}),
        json!({"memory_bytes": 50 * GIB, "count": 2}),
        json!({"compute_capability": "8.9"}),
        json!({"driver": "560"}),
        json!({"driver": "550.54"}),
        json!({"vendor": "amd"}),
    ] {
        out += &format!("{gpu}: {}\n", placed(&inventory, &[("a", 1, gpu.clone())]));
    }
    assert_snapshot!(out, @r#"
    {"models":["H100"]}: a-0: 1
    {"models":["h200","A100"],"count":2}: a-0: 0 2
    {"models":["A100"],"count":3}: no room for a
    {"memory_bytes":53687091200,"count":2}: a-0: 0 1
    {"compute_capability":"8.9"}: a-0: 1
    {"driver":"560"}: no room for a
    {"driver":"550.54"}: a-0: 1
    {"vendor":"amd"}: no room for a
    "#);
}

#[test]
fn roles_that_follow_each_other_have_the_same_devices() {
    let two = host(&[&[0, 1]]);
    let chain = [("prepare", 1, json!({})), ("train", 2, json!({"needs": needs("prepare", 1)}))];
    assert_eq!(placed(&two, &chain), "prepare-0: 0; train-0: 0; train-1: 1");
    let beside = [("a", 1, json!({})), ("b", 2, json!({}))];
    assert_eq!(placed(&two, &beside), "no room for a");
    // Needs that cross: a before c, b before c and d.
    let cross = [
        ("a", 1, json!({})),
        ("b", 1, json!({})),
        (
            "c",
            1,
            json!({"needs": [{"role": "a", "state": "succeeded", "min": 1}, {"role": "b", "state": "succeeded", "min": 1}]}),
        ),
        ("d", 1, json!({"needs": needs("b", 1)})),
    ];
    assert_eq!(placed(&two, &cross), "a-0: 0; b-0: 1; c-0: 0; d-0: 1");
    // Demands that few devices match come first.
    let mut mixed = host(&[&[0, 1]]);
    mixed.gpus[0].name = "NVIDIA H100 PCIe".to_owned();
    let picky = [("any", 1, json!({})), ("picky", 1, json!({"models": ["H100"]}))];
    assert_eq!(placed(&mixed, &picky), "any-0: 1; picky-0: 0");
    // The number of concurrent tasks, not the number of all tasks.
    assert_eq!(placed(&two, &[("a", 9, json!({"parallel": 2}))]), "a-0: 0; a-1: 1");
}

#[test]
fn pinned_devices_are_those_and_no_others_in_their_order() {
    let mut inventory = host(&[&[0, 1, 2, 3]]);
    partition(&mut inventory, 3, &["1g.10gb", "1g.10gb"]);
    let pinned = |pins: &[&str], taken: &DeviceUsage| {
        let demands = demands(&[("a", 2, json!({}))], pins, &inventory);
        place(&demands, FreeDevices { inventory: &inventory, usage: taken, uid: 0 })
            .map(|leased| shown(&leased))
    };
    assert_eq!(pinned(&["2", "0"], &DeviceUsage::default()).unwrap(), "a-0: 2; a-1: 0");
    assert_eq!(pinned(&["3:1", "1"], &DeviceUsage::default()).unwrap(), "a-0: 3:1; a-1: 1");
    assert_eq!(pinned(&["2", "0", "1"], &without(&[0])).unwrap(), "a-0: 2; a-1: 1");
    assert_eq!(pinned(&["2", "0"], &without(&[0])), Err(PlacementError(0)));
    assert_eq!(pinned(&["3:1", "1"], &without(&[3])), Err(PlacementError(0)));
    // A demand that names no instance gets none.
    assert_eq!(placed(&inventory, &[("a", 4, json!({}))]), "no room for a");
}

#[test]
fn instances_of_cards_that_are_cut_up() {
    let mut inventory = host(&[&[0, 1, 2]]);
    partition(&mut inventory, 0, &["1g.10gb", "1g.10gb", "3g.40gb"]);
    partition(&mut inventory, 1, &["1g.10gb"]);
    let mut out = String::new();
    for (instances, gpu) in [
        (1, json!({"share": {"profile": "1g.10gb"}})),
        (3, json!({"share": {"profile": "1g.10gb"}})),
        (4, json!({"share": {"profile": "1g.10gb"}})),
        (1, json!({"count": 2, "share": {"profile": "1g.10gb"}})),
        (1, json!({"count": 2, "share": {"profile": "1g.10gb", "same_card": true}})),
        (1, json!({"count": 3, "share": {"profile": "1g.10gb", "same_card": true}})),
        (1, json!({"share": {"memory_bytes": 11 * GIB, "isolation": "hard"}})),
        (1, json!({"share": {"cores_percent": 40, "isolation": "hard"}})),
        (1, json!({"share": {"cores_percent": 50, "isolation": "hard"}})),
        (1, json!({})),
    ] {
        out += &format!("{instances} of {gpu}: {}\n", placed(&inventory, &[("a", instances, gpu.clone())]));
    }
    assert_snapshot!(out, @r#"
    1 of {"share":{"profile":"1g.10gb"}}: a-0: 1:0
    3 of {"share":{"profile":"1g.10gb"}}: a-0: 1:0; a-1: 0:0; a-2: 0:1
    4 of {"share":{"profile":"1g.10gb"}}: no room for a
    1 of {"count":2,"share":{"profile":"1g.10gb"}}: a-0: 0:0 1:0
    1 of {"count":2,"share":{"profile":"1g.10gb","same_card":true}}: a-0: 0:0 0:1
    1 of {"count":3,"share":{"profile":"1g.10gb","same_card":true}}: no room for a
    1 of {"share":{"memory_bytes":11811160064,"isolation":"hard"}}: a-0: 0:2
    1 of {"share":{"cores_percent":40,"isolation":"hard"}}: a-0: 0:2
    1 of {"share":{"cores_percent":50,"isolation":"hard"}}: no room for a
    1 of {}: a-0: 2
    "#);
}

#[test]
fn slices_fill_a_card_and_never_more_than_it_has() {
    let two = host(&[&[0, 1]]);
    let half = json!({"share": {"memory_bytes": 40 * GIB, "cores_percent": 30}});
    let mut out = String::new();
    for (instances, gpu) in [
        (1, half.clone()),
        (3, half.clone()),
        (4, half.clone()),
        (5, half),
        (3, json!({"share": {"cores_percent": 60}})),
        (1, json!({"count": 2, "share": {"memory_bytes": 30 * GIB}})),
        (2, json!({"count": 2, "share": {"memory_bytes": 40 * GIB}})),
        (1, json!({"count": 2, "share": {"memory_bytes": 40 * GIB, "same_card": true}})),
        (1, json!({"count": 3, "share": {"memory_bytes": 40 * GIB, "same_card": true}})),
        (1, json!({"share": {"memory_bytes": 81 * GIB}})),
    ] {
        out += &format!("{instances} of {gpu}: {}\n", placed(&two, &[("a", instances, gpu.clone())]));
    }
    assert_snapshot!(out, @r#"
    1 of {"share":{"memory_bytes":42949672960,"cores_percent":30}}: a-0: 0(40G 30%)
    3 of {"share":{"memory_bytes":42949672960,"cores_percent":30}}: a-0: 0(40G 30%); a-1: 0(40G 30%); a-2: 1(40G 30%)
    4 of {"share":{"memory_bytes":42949672960,"cores_percent":30}}: a-0: 0(40G 30%); a-1: 0(40G 30%); a-2: 1(40G 30%); a-3: 1(40G 30%)
    5 of {"share":{"memory_bytes":42949672960,"cores_percent":30}}: no room for a
    3 of {"share":{"cores_percent":60}}: no room for a
    1 of {"count":2,"share":{"memory_bytes":32212254720}}: a-0: 0(30G) 1(30G)
    2 of {"count":2,"share":{"memory_bytes":42949672960}}: a-0: 0(40G) 1(40G); a-1: 0(40G) 1(40G)
    1 of {"count":2,"share":{"memory_bytes":42949672960,"same_card":true}}: a-0: 0(80G)
    1 of {"count":3,"share":{"memory_bytes":42949672960,"same_card":true}}: no room for a
    1 of {"share":{"memory_bytes":86973087744}}: no room for a
    "#);
    // A task with both cards and one with either are not served by one server.
    let mixed = [
        ("both", 1, json!({"count": 2, "share": {"memory_bytes": GIB}})),
        ("one", 1, json!({"share": {"memory_bytes": GIB}})),
    ];
    assert_eq!(placed(&two, &mixed), "no room for one");
    // Roles that follow each other have the same slices.
    let part = json!({"memory_bytes": 50 * GIB});
    let chain = [("a", 2, json!({"share": part})), ("b", 2, json!({"share": part, "needs": needs("a", 2)}))];
    assert_eq!(placed(&two, &chain), "a-0: 0(50G); a-1: 1(50G); b-0: 0(50G); b-1: 1(50G)");
}

#[test]
fn slices_of_others_are_counted_and_not_mixed() {
    let one = host(&[&[0]]);
    let small: &[(&str, u32, Value)] = &[("a", 1, json!({"share": {"memory_bytes": 30 * GIB}}))];
    let Ok(first) = place(
        &demands(small, &[], &one),
        FreeDevices { inventory: &one, usage: &DeviceUsage::default(), uid: 0 },
    ) else {
        panic!()
    };
    let beside = |uid: u32, times: usize| {
        let mut taken = DeviceUsage::default();
        (0..times).for_each(|_| taken.add_lease(&first, uid));
        placed_beside(&taken, &one, small)
    };
    assert_eq!(beside(0, 1), "a-0: 0(30G)");
    assert_eq!(beside(0, 2), "no room for a");
    // Another user's programs are served by another server.
    assert_eq!(beside(1000, 1), "no room for a");
    let mut taken = DeviceUsage::default();
    taken.add_lease(&first, 0);
    assert_eq!(placed_beside(&taken, &one, &[("a", 1, json!({}))]), "no room for a");
    let sliced = json!({"share": {"memory_bytes": GIB, "isolation": "none"}});
    assert_eq!(placed_beside(&taken, &one, &[("a", 1, sliced)]), "no room for a");
    // A whole card has no slices for others.
    assert_eq!(placed_beside(&without(&[0]), &one, small), "no room for a");
}

proptest! {
    /// For any request: each seat has what it requests, concurrent tasks have different devices, and what was taken is
    /// not assigned. If the numbers of whole GPUs fit, there is room.
    #[test]
    fn no_resource_is_assigned_twice(
        groups in proptest::collection::vec(1_u32..4, 1..4),
        roles in proptest::collection::vec((1_u32..4, 1_u32..4, any::<bool>()), 1..4),
        taken in proptest::collection::vec(0_u32..8, 0..4),
    ) {
        let mut next = 0;
        let groups: Vec<Vec<u32>> = groups.iter().map(|&size| { next += size; (next - size..next).collect() }).collect();
        let inventory = host(&groups.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let names = ["a", "b", "c"];
        let chained = |n: usize| n > 0 && roles[n].2;
        let wanted: Vec<(&str, u32, Value)> = roles.iter().enumerate().map(|(n, (instances, count, _))| {
            let mut gpu = json!({"count": count});
            if chained(n) { gpu["needs"] = needs(names[n - 1], roles[n - 1].0); }
            (names[n], *instances, gpu)
        }).collect();
        let demands = demands(&wanted, &[], &inventory);
        let taken = without(&taken);
        let free = inventory.devices().into_iter().filter(|device| taken.is_free(*device)).count() as u64;
        let max = claim_of(&wanted);
        match place(&demands, FreeDevices { inventory: &inventory, usage: &taken, uid: 0 }) {
            Err(_) => prop_assert!(max > free, "{max} of {free}"),
            Ok(leased) => {
                prop_assert!(max <= free);
                for slot in &leased.slots {
                    prop_assert!(taken.is_free(slot.device));
                }
                for (place, demand) in demands.roles.iter().enumerate() {
                    let of_role: Vec<&DeviceSet> = leased.seats.iter().filter(|seat| seat.role == demand.role).collect();
                    prop_assert_eq!(of_role.len(), demand.seats as usize);
                    let own: Vec<usize> = of_role.iter().flat_map(|seat| seat.slots.clone()).collect();
                    prop_assert_eq!(own.len() as u64, demand.total());
                    let others = leased.seats.iter().filter(|seat| {
                        let other = demands.roles.iter().position(|other| other.role == seat.role).unwrap();
                        other != place && !demand.apart.contains(&other)
                    });
                    let mut at_once: Vec<usize> = others.flat_map(|seat| seat.slots.clone()).chain(own).collect();
                    let before = at_once.len();
                    at_once.sort_unstable();
                    at_once.dedup();
                    // Others may be apart from each other and have the same; this role's are its own.
                    prop_assert!(at_once.len() as u64 >= demand.total() && at_once.len() <= before);
                    let devices: std::collections::BTreeSet<DeviceId> = leased.slots.iter().map(|slot| slot.device).collect();
                    prop_assert_eq!(devices.len(), leased.slots.len());
                }
            }
        }
    }
}

/// The peak number of GPUs: the maximum over all sets of roles that may run together.
fn claim_of(roles: &[(&str, u32, Value)]) -> u64 {
    let plan = plan(roles);
    let order = RoleOrder::of(&plan);
    let whole = |role: usize| u64::from(roles[role].1) * roles[role].2["count"].as_u64().unwrap_or(1);
    let sets = (0..1_u32 << roles.len())
        .map(|set| (0..roles.len()).filter(|role| set & 1 << role != 0).collect::<Vec<_>>());
    let together = |set: &Vec<usize>| {
        set.iter().all(|&one| order.after(one).is_disjoint(&set.iter().copied().collect()))
    };
    sets.filter(together).map(|set| set.into_iter().map(whole).sum()).max().unwrap_or_default()
}
