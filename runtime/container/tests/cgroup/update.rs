//! Limits that are changed while a program runs.

use jobc_sys::error::Kind;
use oci_spec::runtime::LinuxResources;
use serde_json::{Value, json};

use super::{TestGroup, make, resources};

const MEMORY: &[&str] = &["memory.max", "memory.limit_in_bytes"];
const PIDS: &[&str] = &["pids.max"];
const CPU: &[&str] = &["cpu.max", "cpu.cfs_quota_us"];
const WEIGHT: &[&str] = &["cpu.weight", "cpu.shares"];

fn update(trial: &mut TestGroup, json: &Value, sections: &[&str]) -> Result<(), jobc_sys::error::Error> {
    let resources: LinuxResources = resources(json);
    trial.cgroup.update(&trial.layout, &resources, sections, |_| Ok(()))
}

#[test]
fn limits_grow_and_shrink_and_go_away() {
    let first = json!({"memory": {"limit": 67_108_864, "swap": 67_108_864}, "pids": {"limit": 50}});
    let Some(mut trial) = make("grow", &first) else { return };
    for megabytes in [64, 256, 32] {
        let bytes = megabytes << 20;
        update(
            &mut trial,
            &json!({"memory": {"limit": bytes, "swap": bytes}, "pids": {"limit": 7}}),
            &["memory"],
        )
        .unwrap_or_else(|error| panic!("{megabytes}: {error}"));
        assert_eq!(trial.read(MEMORY), bytes.to_string());
        assert_eq!(trial.read(PIDS), "50", "another section");
    }
    let none = json!({"memory": {"limit": -1, "swap": -1}, "pids": {"limit": -1}});
    update(&mut trial, &none, &["memory", "pids"]).expect("taken away");
    assert!(["max", "9223372036854771712"].contains(&trial.read(MEMORY).as_str()), "{}", trial.read(MEMORY));
    assert_eq!(trial.read(PIDS), "max");
}

/// On cgroup v1 the container was in no group of that hierarchy, as nothing was limited there.
#[test]
fn a_limit_of_a_new_kind_holds_for_who_runs_already() {
    let Some(mut trial) = make("kind", &json!({})) else { return };
    let mut child = trial.start("sleep 100; true");
    let quota = json!({"cpu": {"quota": 20_000, "period": 100_000, "shares": 512}});
    update(&mut trial, &quota, &["cpu"]).unwrap_or_else(|error| panic!("{error}"));
    assert!(["20000 100000", "20000"].contains(&trial.read(CPU).as_str()), "{}", trial.read(CPU));
    assert!(["20", "512"].contains(&trial.read(WEIGHT).as_str()), "{}", trial.read(WEIGHT));
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", child.id())).expect("it runs");
    let of =
        |line: &&str| line.split(':').nth(1).is_some_and(|names| names.split(',').any(|name| name == "cpu"));
    let v1 = groups.lines().find(of);
    assert!(v1.is_none_or(|line| line.contains("-kind/")), "{groups}");
    trial.cgroup.kill().expect("killed");
    child.wait().expect("it is gone");
}

#[test]
fn what_cannot_be_kept_changes_nothing() {
    let Some(mut trial) = make("nothing", &json!({"pids": {"limit": 50}, "memory": {"limit": 67_108_864}}))
    else {
        return;
    };
    let before: Vec<_> = trial.cgroup.directories().map(ToOwned::to_owned).collect();
    let bad = json!({"memory": {"limit": 134_217_728}, "cpu": {"shares": 9}, "pids": {"limit": 99_999_999_999_999_i64}});
    let error = update(&mut trial, &bad, &["memory", "cpu", "pids"]).expect_err("too many");
    assert_eq!((error.kind, error.pointer()), (Kind::Unenforceable, Some("/linux/resources/pids/limit")));
    assert_eq!((trial.read(PIDS), trial.read(MEMORY)), ("50".to_owned(), "67108864".to_owned()));
    assert_eq!(
        trial.cgroup.directories().map(ToOwned::to_owned).collect::<Vec<_>>(),
        before,
        "no group more"
    );
    let less = json!({"memory": {"limit": 4096, "checkBeforeUpdate": true}});
    let mut child = trial.start("dd if=/dev/zero of=/dev/shm/jobc-test-update bs=1M count=4 2>/dev/null; rm /dev/shm/jobc-test-update; sleep 100");
    super::lifecycle::wait_for(|| trial.cgroup.usage().memory.is_some_and(|used| used > 4096));
    update(&mut trial, &less, &["memory"]).expect_err("more is in use");
    assert_eq!(trial.read(MEMORY), "67108864");
    trial.cgroup.kill().expect("killed");
    child.wait().expect("it is gone");
}

#[test]
fn resource_usage_is_reported() {
    let Some(trial) = make("told", &json!({"memory": {"limit": 67_108_864}, "pids": {"limit": 50}})) else {
        return;
    };
    let mut child = trial.start("sleep 100; true");
    super::lifecycle::wait_for(|| trial.cgroup.processes().is_ok_and(|list| list.len() == 2));
    let stats = trial.cgroup.stats();
    assert_eq!(stats["memory"]["usage"]["limit"], 67_108_864, "{stats:#}");
    assert_eq!((stats["pids"]["current"].as_u64(), stats["pids"]["limit"].as_u64()), (Some(2), Some(50)));
    for place in ["/memory/usage/usage", "/memory/cache", "/cpu/usage/total"] {
        assert!(stats.pointer(place).is_some_and(Value::is_u64), "{place} in {stats:#}");
    }
    trial.cgroup.kill().expect("killed");
    child.wait().expect("it is gone");
}
