use std::net::TcpListener;

use serde_json::json;

use super::*;
use jobc_fake_gpus::plan as sample;

fn port(label: &str, number: u16, count: u32, shared: Option<u32>, auto: bool) -> serde_json::Value {
    let mut port = json!({"label": label, "number": number, "count": count, "auto": auto, "publish": "none"});
    if let Some(base) = shared {
        port["shared_base"] = json!(base);
    }
    port
}

fn plan(ports: &[serde_json::Value], instances: u32) -> JobPlan {
    sample::plan(
        &json!({"network": "auto", "roles": [{"name": "a", "instances": instances, "ports": ports}]}),
    )
}

fn numbers(plan: &JobPlan) -> Vec<Vec<u16>> {
    plan.roles[0].ports.iter().map(|port| numbers_of(port, plan.roles[0].instances).collect()).collect()
}

#[test]
fn numbers_that_are_free_stay_and_others_move() {
    let ports = [port("x", 20_000, 2, Some(20_000), true), port("y", 20_002, 1, Some(20_004), true)];
    let mut free = plan(&ports, 2);
    choose(&mut free, |_| false, |_| None).unwrap();
    assert_eq!(numbers(&free), [vec![20_000, 20_001, 20_002, 20_003], vec![20_004, 20_005]]);
    let mut taken = plan(&ports, 2);
    choose(&mut taken, |port| [20_001, 20_005].contains(&port), |_| None).unwrap();
    // Four in a row from the first free one, then two that are not taken.
    assert_eq!(numbers(&taken), [vec![20_006, 20_007, 20_008, 20_009], vec![20_002, 20_003]]);
}

#[test]
fn the_number_of_a_rendezvous_moves_with_its_references() {
    let mut plan = plan(&[port("rendezvous", 29_500, 1, None, true)], 4);
    plan.distributed = serde_json::from_value(json!({
        "framework": "torchrun", "members": [], "instances": 4, "world_size": 4, "port": 29_500,
    }))
    .unwrap();
    choose(&mut plan, |port| port == 29_500, |_| None).unwrap();
    assert_eq!(numbers(&plan), [vec![20_000]]);
    assert_eq!(plan.distributed.unwrap().port, 20_000);
}

#[test]
fn a_written_number_is_kept_or_refused() {
    let mut fixed = plan(&[port("http", 8080, 1, None, false), port("x", 8081, 1, Some(8080), true)], 1);
    choose(&mut fixed, |_| false, |_| None).unwrap();
    assert_eq!(numbers(&fixed), [vec![8080], vec![20_000]]);
    let error = choose(&mut fixed, |port| port == 8080, |_| None).unwrap_err();
    assert_eq!(error.to_string(), "`roles.a.resources.ports.http`: port 8080 is taken");
    let owner = |_| Some(PortOwner::Job("web.1".parse().unwrap()));
    let error = choose(&mut fixed, |port| port == 8080, owner).unwrap_err();
    assert_eq!(error.to_string(), "`roles.a.resources.ports.http`: port 8080 is taken by the job `web.1`");
    assert!(
        error.advice().unwrap().starts_with("stop that job with `jobc stop web.1`, or write another number")
    );
    let mut auto = plan(&[port("x", 20_000, 1, Some(20_000), true)], 1);
    let error = choose(&mut auto, |_| true, |_| None).unwrap_err();
    assert_eq!(error.to_string(), "there are no 1 free ports in a row for `x` of `a`");
}

#[test]
fn a_port_at_which_a_program_listens_is_not_free() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!(!is_free(port));
    drop(listener);
    assert!(is_free(port));
    let six = TcpListener::bind("[::1]:0");
    if let Ok(six) = six {
        assert!(!is_free(six.local_addr().unwrap().port()));
    }
}

#[test]
fn two_commands_at_once_get_different_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(dir.path());
    let chosen: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let ledger = &ledger;
                scope.spawn(move || {
                    let mut plan = plan(&[port("x", 20_000, 1, Some(20_000), true)], 3);
                    (choose_for(&mut plan, ledger).unwrap(), numbers(&plan).concat())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut all: Vec<u16> = chosen.into_iter().flat_map(|(_, numbers)| numbers).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 24);
}
