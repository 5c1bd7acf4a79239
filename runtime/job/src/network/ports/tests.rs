use std::fmt::Write as _;

use jobc_schema::plan::Plan;
use serde_json::json;

use super::*;

/// A plan with a role for each entry: its instances and its port.
fn plan(network: &str, roles: &[(&str, u32, serde_json::Value)]) -> (JobPlan, Vec<TaskId>) {
    let roles: Vec<_> = roles
        .iter()
        .map(|(name, instances, port)| {
            json!({"name": name, "instances": instances, "image": "main", "command": {"image": {}}, "resources": {},
                "ports": [port], "completion": {}, "retry": {"max": 0, "scope": "task"}, "grace_period_seconds": 30,
                "security": {}})
        })
        .collect();
    let plan: Plan = serde_json::from_value(json!({"version": 1, "jobs": [{
        "name": "demo", "target": {"name": "local", "settings": {"backends": ["oci"]}}, "images": {}, "roles": roles, "stages": [],
        "gang": "auto", "network": network, "totals": {"instances": 0, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0,
        "gpu_slices": 0}}]}))
    .unwrap();
    let job = plan.jobs.into_iter().next().unwrap();
    let tasks = job.roles.iter().flat_map(|role| (0..role.instances).map(|i| TaskId::new(&role.name, i)));
    let tasks = tasks.collect();
    (job, tasks)
}

fn port(number: u16, count: u32, publish: &str) -> serde_json::Value {
    json!({"label": "http", "number": number, "count": count, "auto": false, "publish": publish})
}

fn publish_port(port: u16, task: &str) -> Publish {
    Publish {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port,
        task: task.parse().unwrap(),
        label: "http".into(),
    }
}

/// The forwards a line each, or the error with its help.
fn check((plan, tasks): &(JobPlan, Vec<TaskId>), publish_port: &[Publish]) -> String {
    match forwards(plan, tasks, publish_port) {
        Ok(forwards) => forwards.iter().fold(String::new(), |mut text, forward| {
            let Publish { address, port, .. } = &forward.publish;
            let targets: Vec<String> = forward.tasks.iter().map(|task| tasks[*task].to_string()).collect();
            let _ = writeln!(text, "{address}:{port} -> {} port {}", targets.join(", "), forward.port);
            text
        }),
        Err(error) => format!("{error}\n{}\n", error.advice().as_deref().unwrap_or_default()),
    }
}

#[test]
fn a_published_port_has_the_same_number_and_further_instances_the_next() {
    let job = plan("job", &[("web", 2, port(8080, 1, "host")), ("db", 3, port(5432, 1, "service"))]);
    insta::assert_snapshot!(check(&job, &[]), @r"
    0.0.0.0:8080 -> web-0 port 8080
    0.0.0.0:8081 -> web-1 port 8080
    127.0.0.1:5432 -> db-0, db-1, db-2 port 5432
    ");
    insta::assert_snapshot!(check(&job, &[publish_port(9000, "web-1"), publish_port(0, "db-2")]), @r"
    127.0.0.1:9000 -> web-1 port 8080
    127.0.0.1:0 -> db-2 port 5432
    0.0.0.0:8080 -> web-0 port 8080
    127.0.0.1:5432 -> db-0, db-1, db-2 port 5432
    ");
}

#[test]
fn several_ports_of_a_label_stay_side_by_side() {
    let job = plan("job", &[("web", 2, port(7000, 2, "host"))]);
    insta::assert_snapshot!(check(&job, &[publish_port(0, "web-0")]), @r"
    127.0.0.1:0 -> web-0 port 7000
    127.0.0.1:0 -> web-0 port 7001
    0.0.0.0:7002 -> web-1 port 7000
    0.0.0.0:7003 -> web-1 port 7001
    ");
}

#[test]
fn what_cannot_be_published_is_reported_with_what_can() {
    let job = plan("job", &[("web", 1, port(8080, 2, "none"))]);
    let other = Publish { label: "grpc".into(), ..publish_port(1, "web-0") };
    insta::assert_snapshot!(
        check(&job, &[publish_port(1, "wbe-0")]) + &check(&job, &[publish_port(1, "web-1")]) + &check(&job, &[other])
            + &check(&job, &[publish_port(65535, "web-0")])
            + &check(&plan("none", &[("web", 1, port(80, 1, "none"))]), &[publish_port(1, "web-0")])
            + &check(&plan("auto", &[("web", 1, port(80, 1, "host"))]), &[publish_port(1, "web-0")]),
        @r"
    cannot publish a port of `wbe-0`: no such task
    the roles are `web`, and instances are numbered from 0
    cannot publish a port of `web-1`: no such task
    the roles are `web`, and instances are numbered from 0
    role `web` has no port `grpc`
    it has `http`
    port `http` of `web-0` would be published above 65535, the last port
    choose another with `--publish PORT:web-0:http`
    port `http` of `web-0` cannot be published: the job has `network: none`
    write `network: job`
    port `http` of `web-0` cannot be published: it is on the host's network already
    leave `--publish` out, or write `network: job`
    ");
}
