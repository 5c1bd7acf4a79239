//! Large jobs: nothing grows with instances, and nothing grows faster than roles.

use serde_json::{Map, Value, json};

use super::super::KubernetesBackend;
use super::plan;
use crate::backends::fixture;

fn role(instances: u32) -> Value {
    json!({
        "instances": instances,
        "provided_env": {
            "JOBC_HOSTS_MAIN": [{"hosts": {"role": "main", "separator": ","}}],
            "MASTER_ADDR": [{"host": {"role": "main", "index": 0}}]
        },
        "provided_files": [{"path": "/etc/jobc/job.json", "content": [{"hosts": {"role": "main", "separator": ","}}], "mode": 420}]
    })
}

#[test]
fn oversized_lists_are_omitted_with_a_warning() {
    let job = plan(json!({}), &json!({"roles": {"main": role(100_000)}}));
    let (files, report) = fixture::lower(&KubernetesBackend, &job);
    insta::assert_snapshot!(report);
    let size: usize = files.iter().map(|file| fixture::text(file).len()).sum();
    assert!(size < 4096, "{size} bytes");
}

#[test]
fn short_lists_are_written() {
    let job = plan(json!({}), &json!({"roles": {"main": role(3)}}));
    let (files, report) = fixture::lower(&KubernetesBackend, &job);
    assert_eq!(report, "");
    let all: String = files.iter().map(fixture::text).collect();
    assert_eq!(all.matches("demo-0.demo,demo-1.demo,demo-2.demo").count(), 2, "{all}");
}

#[test]
fn more_at_once_than_a_job_runs() {
    let check = |role: Value, max: Option<&str>| {
        let (_, report) =
            fixture::lower(&KubernetesBackend, &plan(json!({}), &json!({"roles": {"main": role}})));
        match max {
            Some(max) => assert!(report.contains(&format!("runs at most {max}")), "{report}"),
            None => assert_eq!(report, ""),
        }
    };
    check(json!({"instances": 100_000}), None);
    check(json!({"instances": 100_001}), Some("100000"));
    check(json!({"instances": 200_000, "parallel": 20_000}), None);
    check(
        json!({"instances": 200_000, "parallel": 20_000, "retry": {"max": 1, "scope": "task"}}),
        Some("10000"),
    );
}

#[test]
fn thousands_of_roles_share_what_is_the_same() {
    let roles: Map<String, Value> = (0..3000)
        .map(|i| {
            let files = json!([{"path": "/etc/a.conf", "content": "same\n", "mode": 420}]);
            (format!("r{i}"), json!({"files": files}))
        })
        .collect();
    let (files, report) = fixture::lower(&KubernetesBackend, &plan(json!({}), &json!({"roles": roles})));
    assert_eq!(report, "");
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["01-configmap-demo-files.yaml", "02-jobset-demo.yaml"]);
    let map = fixture::text(&files[0]);
    assert_eq!(map.matches("same").count(), 1, "{map}");
}
