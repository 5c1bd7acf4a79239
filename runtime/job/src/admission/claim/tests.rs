use proptest::prelude::*;
use serde_json::json;

use super::*;
use jobc_fake_gpus::plan as sample;

/// A role's name, instances, thousandths of a CPU for each, and its needs: role, state, count.
type Role<'a> = (&'a str, u32, u64, &'a [(&'a str, &'a str, u32)]);

/// A plan of these roles.
fn plan(roles: &[Role<'_>]) -> JobPlan {
    let roles: Vec<_> = roles
        .iter()
        .map(|(name, instances, cpu, needs)| {
            let needs: Vec<_> = needs
                .iter()
                .map(|(role, state, min)| json!({"role": role, "state": state, "min": min}))
                .collect();
            json!({"name": name, "instances": instances, "needs": needs,
                "resources": {"cpu_millis": cpu, "memory_bytes": cpu * 1000}})
        })
        .collect();
    sample::plan(&json!({"roles": roles}))
}

fn cpus(roles: &[Role<'_>]) -> u64 {
    let claim = of(&plan(roles));
    assert_eq!(claim.memory_bytes, claim.cpu_millis * 1000);
    claim.cpu_millis
}

#[test]
fn what_runs_together_is_added_and_what_follows_is_not() {
    // Side by side.
    assert_eq!(cpus(&[("a", 2, 1000, &[]), ("b", 1, 500, &[])]), 2500);
    // One after the other.
    assert_eq!(cpus(&[("a", 2, 1000, &[]), ("b", 1, 500, &[("a", "succeeded", 2)])]), 2000);
    // The rest of `a` runs at the same time as `b`, which waits for only one of its instances.
    assert_eq!(cpus(&[("a", 2, 1000, &[]), ("b", 1, 500, &[("a", "succeeded", 1)])]), 2500);
    // Waiting for a start, or for readiness, is not waiting for an end.
    assert_eq!(cpus(&[("a", 1, 1000, &[]), ("b", 1, 500, &[("a", "ready", 1)])]), 1500);
    assert_eq!(cpus(&[("a", 1, 1000, &[]), ("b", 1, 500, &[("a", "started", 1)])]), 1500);
}

#[test]
fn a_diamond_is_as_wide_as_its_middle() {
    let needs_a: &[_] = &[("a", "succeeded", 1)];
    let diamond = |a: u64, b: u64, c: u64, d: u64| {
        cpus(&[
            ("a", 1, a, &[]),
            ("b", 1, b, needs_a),
            ("c", 1, c, needs_a),
            ("d", 1, d, &[("b", "succeeded", 1), ("c", "succeeded", 1)]),
        ])
    };
    assert_eq!(diamond(8, 4, 4, 1), 8);
    assert_eq!(diamond(1, 4, 4, 7), 8);
    assert_eq!(diamond(1, 4, 4, 9), 9);
}

#[test]
fn who_follows_one_that_only_started_still_follows_what_was_before() {
    // `c` starts after `b` started, and that was after `a` had ended.
    let roles: &[Role<'_>] =
        &[("a", 1, 10, &[]), ("b", 1, 1, &[("a", "succeeded", 1)]), ("c", 1, 9, &[("b", "started", 1)])];
    assert_eq!(cpus(roles), 10);
    // A server that outlives all other roles is counted together with all of them.
    let roles: &[Role<'_>] = &[
        ("server", 1, 3, &[]),
        ("a", 1, 10, &[("server", "ready", 1)]),
        ("b", 1, 8, &[("a", "succeeded", 1)]),
    ];
    assert_eq!(cpus(roles), 13);
}

#[test]
fn at_once_means_no_more_than_may_run_at_once() {
    let plan = sample::plan(&json!({"roles": [
        {"name": "a", "instances": 100, "parallel": 3, "resources": {
            "cpu_millis": 500, "disk_bytes": 7, "gpu": {"count": 2, "first": 0, "vendor": "nvidia"}}},
        {"name": "b", "instances": 4, "resources": {"gpu": {"count": 1, "first": 0, "vendor": "nvidia",
            "share": {"isolation": "soft", "same_card": false}}}},
    ]}));
    let claim = of(&plan);
    assert_eq!((claim.cpu_millis, claim.disk_bytes, claim.gpus, claim.memory_bytes), (1500, 21, 6, 0));
}

#[test]
fn ports_are_those_of_the_hosts_own_network() {
    let ports = json!([
        {"label": "http", "number": 8080, "count": 1, "auto": false, "publish": "none"},
        {"label": "data", "number": 20000, "count": 2, "auto": true, "shared_base": 20000, "publish": "none"},
    ]);
    let on = |network: &str| {
        of(&sample::plan(
            &json!({"network": network, "roles": [{"name": "a", "instances": 2, "ports": ports}]}),
        ))
        .ports
    };
    assert_eq!(on("host"), [8080, 20000, 20001, 20002, 20003]);
    assert_eq!(on("auto"), on("host"));
    assert!(on("job").is_empty() && on("none").is_empty());
}

#[test]
fn a_thousand_roles_take_no_time() {
    let names: Vec<String> = (0..1000).map(|number| format!("r{number}")).collect();
    let before: Vec<Vec<(&str, &str, u32)>> = (0..1000_usize)
        .map(|number| if number < 10 { vec![] } else { vec![(names[number - 10].as_str(), "succeeded", 1)] })
        .collect();
    let roles: Vec<_> = (0..1000)
        .map(|number| {
            (names[number].as_str(), 1, 1 + (number as u64 * 7919) % 100, before[number].as_slice())
        })
        .collect();
    let plan = plan(&roles);
    let begun = std::time::Instant::now();
    let claim = of(&plan);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    // Ten rows of a hundred each: the heaviest of each row.
    let expected: u64 = (0..10_u64)
        .map(|row| (0..100_u64).map(|step| 1 + ((row + step * 10) * 7919) % 100).max().unwrap_or(0))
        .sum();
    assert_eq!(claim.cpu_millis, expected);
}

#[test]
fn of_combinations_that_take_turns_only_the_heaviest_are_counted() {
    let train = |number: u32, cpu: u64, max: Option<u32>| {
        let matrix = json!({"role": "train", "number": number, "values": {}, "max_parallel": max});
        json!({"name": format!("train-m{number}"), "matrix": matrix, "resources": {"cpu_millis": cpu},
            "needs": [{"role": "prepare", "state": "succeeded", "min": 1}]})
    };
    let cpus = |max: Option<u32>| {
        let needs: Vec<_> =
            (0..3).map(|n| json!({"role": format!("train-m{n}"), "state": "succeeded", "min": 1})).collect();
        let plan = sample::plan(&json!({"roles": [
            {"name": "prepare", "resources": {"cpu_millis": 3500}},
            train(0, 1000, max), train(1, 3000, max), train(2, 2000, max),
            {"name": "beside", "resources": {"cpu_millis": 100}},
            {"name": "evaluate", "resources": {"cpu_millis": 100}, "needs": needs},
        ]}));
        of(&plan).cpu_millis
    };
    assert_eq!((cpus(None), cpus(Some(2)), cpus(Some(1)), cpus(Some(9))), (6100, 5100, 3600, 6100));
}

/// All pairs of roles of which one follows another would be gigabytes here.
#[test]
fn a_chain_of_many_roles_needs_what_its_largest_role_does() {
    let names: Vec<String> = (0..20_000).map(|number| format!("r{number}")).collect();
    let needs: Vec<[(&str, &str, u32); 1]> =
        names.iter().map(|name| [(name.as_str(), "succeeded", 2)]).collect();
    let roles: Vec<_> = (0..names.len())
        .map(|number| {
            (
                names[number].as_str(),
                2,
                1 + number as u64 % 7,
                if number == 0 { &[][..] } else { &needs[number - 1][..] },
            )
        })
        .collect();
    assert_eq!(of(&plan(&roles)).cpu_millis, 14);
}

proptest! {
    /// The flow finds what trying every set of roles finds.
    #[test]
    fn the_heaviest_set_is_the_heaviest_of_all(
        weights in prop::collection::vec(0_u64..20, 1..8),
        edges in prop::collection::vec((0_usize..8, 0_usize..8, 0_u32..3), 0..14),
    ) {
        let names: Vec<String> = (0..weights.len()).map(|number| format!("r{number}")).collect();
        let mut needs: Vec<Vec<(&str, &str, u32)>> = vec![vec![]; weights.len()];
        for (a, b, kind) in edges {
            let (first, second) = (a.min(b), a.max(b));
            if first != second && second < weights.len() {
                let need = match kind { 0 => ("started", 1), 1 => ("succeeded", 1), _ => ("succeeded", 2) };
                needs[second].push((&names[first], need.0, need.1));
            }
        }
        // Two instances each, so that one success is not all of them.
        let roles: Vec<_> = (0..weights.len())
            .map(|number| (names[number].as_str(), 2, weights[number], needs[number].as_slice()))
            .collect();
        let plan = plan(&roles);
        let apart = RoleOrder::of(&plan);
        let together = |set: u32| {
            let has = |role: usize| set & (1 << role) != 0;
            (0..weights.len()).all(|one| !has(one) || apart.after(one).iter().all(|&other| !has(other)))
        };
        let weight = |set: u32| (0..weights.len()).filter(|role| set & (1 << role) != 0).map(|role| 2 * weights[role]).sum::<u64>();
        let best = (0..1_u32 << weights.len()).filter(|&set| together(set)).map(weight).max().unwrap_or(0);
        prop_assert_eq!(of(&plan).cpu_millis, best);
    }
}
