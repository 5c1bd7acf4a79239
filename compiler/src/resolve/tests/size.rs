//! Large jobs: plans do not grow with instances, and only linearly with roles.

use std::fmt::Write as _;

use super::plan;

#[test]
fn the_plan_does_not_grow_with_instances() {
    let size = |instances: u32| {
        let plan = plan(&format!(
            "version: 1\nname: big\nimage: a:1\nroles:\n  train: {{instances: {instances}, run: \"x ${{{{ hosts.train | join(',') }}}} ${{{{ hosts.train[1] }}}}\", resources: {{gpu: 8, ports: {{http: auto}}}}}}\ndistributed: {{framework: mpi, roles: [train]}}\n"
        ));
        serde_json::to_string(&plan).unwrap().len()
    };
    assert!(size(100_000) < size(2) + 200);
}

#[test]
fn a_role_of_a_large_job_sees_the_roles_it_can_need() {
    let mut text = "version: 1\nname: many\nimage: a:1\nroles:\n  r0: {run: x}\n".to_owned();
    for role in 1..2000 {
        let _ = writeln!(
            text,
            "  r{role}: {{run: \"x ${{{{ hosts.r7[0] }}}}\", needs: [r{}], resources: {{gpu: 1}}}}",
            role - 1
        );
    }
    let plan = plan(&text);
    let last = plan.roles.last().unwrap();
    let output: Vec<&str> =
        last.provided_env.keys().filter_map(|name| name.strip_prefix("JOBC_HOSTS_")).collect();
    assert_eq!(output, ["R7", "R1999"]);
    assert_eq!(plan.stages.len(), 2000);
    assert_eq!(last.resources.gpu.as_ref().unwrap().first, 1998);
}
