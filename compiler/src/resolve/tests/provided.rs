//! Which variables and files of jobc a role has.

use jobc_schema::plan::JobPlan;

use super::plan;

/// The variables and files of a role, without those of frameworks.
fn of<'p>(plan: &'p JobPlan, role: &str) -> Vec<&'p str> {
    let role = plan.role(role).unwrap();
    let variables = role.provided_env.keys().map(String::as_str).filter(|name| name.starts_with("JOBC_"));
    variables.chain(role.provided_files.iter().map(|file| file.path.as_str())).collect()
}

fn job(rest: &str) -> JobPlan {
    plan(&format!("version: 1\nname: j\nimage: a:1\n{rest}"))
}

#[test]
fn a_task_alone_has_what_it_names() {
    let main = |role: &str| {
        let plan = job(&format!("roles: {{main: {role}}}\n"));
        of(&plan, "main").join(" ")
    };
    assert_eq!(main("{run: python t.py}"), "");
    assert_eq!(main("{run: 'echo $JOBC_JOB'}"), "JOBC_JOB");
    assert_eq!(main("{args: [--rank, $(JOBC_INDEX)]}"), "JOBC_INDEX");
    assert_eq!(main("{run: [x], env: {NEEDS: JOBC_INSTANCES}}"), "JOBC_INSTANCES");
    assert_eq!(main("{run: x, files: {/a.py: {content: 'os.environ[\"JOBC_ROLE\"]'}}}"), "JOBC_ROLE");
    assert_eq!(main("{run: 'jq . /etc/jobc/job.json'}"), "/etc/jobc/job.json");
    assert_eq!(main("{run: x, resources: {ports: {a: 80, b: auto}}}"), "JOBC_PORT_B");
    let all = "JOBC_JOB JOBC_ROLE JOBC_INDEX JOBC_INSTANCES JOBC_HOSTS_MAIN";
    assert_eq!(main("{run: 'env | grep JOBC'}"), all);
    let compat = job("compat: [jobc]\nroles: {main: {run: x}}\n");
    assert_eq!(of(&compat, "main").join(" "), format!("{all} /etc/jobc/job.json"));
}

#[test]
fn tasks_without_a_framework_find_each_other() {
    let plan = job("roles: {main: {instances: 2, run: x, resources: {ports: {a: 80}}}}\n");
    let found = ["JOBC_INDEX", "JOBC_INSTANCES", "JOBC_PORT_A", "JOBC_HOSTS_MAIN", "JOBC_ENDPOINTS_MAIN_A"];
    assert_eq!(of(&plan, "main"), found);
    // Of an array of which one runs at a time, each has its number.
    let plan = job("roles: {main: {instances: 9, parallel: 1, run: x}}\n");
    assert_eq!(of(&plan, "main"), ["JOBC_INDEX", "JOBC_INSTANCES"]);
}

#[test]
fn roles_that_never_run_together_have_no_addresses() {
    let plan = job(
        "roles:\n  a: {run: x}\n  b: {run: x, needs: [a]}\n  c: {run: x, needs: [b]}\n  d: {run: x, needs: [a]}\n",
    );
    assert_eq!(
        (of(&plan, "a"), of(&plan, "c")),
        (vec![], vec!["JOBC_ROLE", "JOBC_INDEX", "JOBC_INSTANCES", "JOBC_HOSTS_C", "JOBC_HOSTS_D"])
    );
    let plan = job(
        "roles:\n  a: {run: x, resources: {ports: {p: 1}}, ready: {port: p}}\n  b: {run: 'y $JOBC_HOSTS_C', needs: {a: ready}}\n  c: {run: x, needs: [b]}\n",
    );
    assert!(of(&plan, "b").contains(&"JOBC_ENDPOINTS_A_P"), "{:?}", of(&plan, "b"));
    assert!(of(&plan, "b").contains(&"JOBC_HOSTS_C"), "a name is enough: {:?}", of(&plan, "b"));
    assert!(of(&plan, "c").contains(&"JOBC_HOSTS_A") && !of(&plan, "c").contains(&"JOBC_HOSTS_B"));
}

#[test]
fn a_framework_tells_its_members() {
    let torchrun = |run: &str, more: &str| {
        job(&format!(
            "roles:\n  t: {{instances: 2, run: '{run}'}}\n{more}distributed: {{framework: torchrun, roles: [t]}}\n"
        ))
    };
    assert_eq!(of(&torchrun("torchrun t.py", ""), "t"), Vec::<&str>::new());
    let named = torchrun("torchrun t.py --hosts $JOBC_HOSTFILE --rank $JOBC_RANK", "");
    assert_eq!(of(&named, "t"), ["JOBC_RANK", "JOBC_HOSTFILE", "/etc/jobc/hostfile"]);
    // No framework leads to the other role.
    let beside = torchrun("torchrun t.py", "  web: {run: x}\n");
    assert_eq!(of(&beside, "t"), ["JOBC_HOSTS_WEB"]);
    assert_eq!(
        of(&beside, "web"),
        [
            "JOBC_ROLE",
            "JOBC_INDEX",
            "JOBC_INSTANCES",
            "JOBC_HOSTS_T",
            "JOBC_ENDPOINTS_T_RENDEZVOUS",
            "JOBC_HOSTS_WEB"
        ]
    );
    let mpi =
        job("roles: {t: {instances: 2, run: mpirun x}}\ndistributed: {framework: horovod, roles: [t]}\n");
    assert_eq!(of(&mpi, "t"), ["/etc/jobc/hostfile"]);
}

#[test]
fn combinations_of_a_matrix_are_not_looked_for() {
    let plan = job("roles:\n  t: {matrix: {x: [1, 2]}, run: go}\n");
    assert_eq!(of(&plan, "t-m0"), Vec::<&str>::new());
}
