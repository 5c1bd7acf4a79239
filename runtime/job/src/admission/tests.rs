mod many;

use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::submission::Submission;
use jobc_fake_gpus::plan as sample;
use jobc_gpu::sharing::SharingSupport;

const GIB: u64 = 1 << 30;

/// A host of 8 CPUs, 16 GiB and 2 GPUs.
fn machine() -> Capacity {
    let gpus = jobc_gpu::testing::host(&[&[0, 1]]);
    Capacity { cpu_millis: 8000, memory_bytes: 16 * GIB, gpus, disk_bytes: 100 * GIB }
}

/// Asks for a job's share of that host.
fn ask(admission: &mut Admission, plan: &JobPlan, queue: bool) -> Result<AdmissionOutcome> {
    ask_of(admission, plan, &machine(), queue)
}

fn ask_of(
    admission: &mut Admission,
    plan: &JobPlan,
    machine: &Capacity,
    queue: bool,
) -> Result<AdmissionOutcome> {
    let demands =
        Demands::of(plan, Submission::default().gpu_choices(), &machine.gpus, &SharingSupport::default())?;
    admission.request(plan, &demands, machine, queue)
}

fn job(name: &str, instances: u32, resources: &serde_json::Value) -> (JobId, JobPlan) {
    let plan = sample::plan(&json!({"roles": [
        {"name": "worker", "instances": instances, "resources": resources},
        {"name": "idle"},
    ]}));
    (JobId { name: name.to_owned(), run: 1 }, plan)
}

fn cpus(name: &str, count: u64) -> (JobId, JobPlan) {
    job(name, 1, &json!({"cpu_millis": count * 1000}))
}

struct Fixture {
    _dir: tempfile::TempDir,
    ledger: Ledger,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path());
        Self { _dir: dir, ledger }
    }

    fn enter(&self, job: &(JobId, JobPlan)) -> Admission {
        Admission::enter(
            self.ledger.clone(),
            Rules::default(),
            &job.0,
            &claim::of(&job.1),
            PastUse::default(),
        )
        .unwrap()
    }
}

fn output(answer: Result<AdmissionOutcome>) -> String {
    match answer {
        Ok(AdmissionOutcome::Admitted) => "admitted".to_owned(),
        Ok(AdmissionOutcome::Queued { place, waits_for }) => format!("waits at place {place}: {waits_for}"),
        Err(error) => format!("{error}\n{}", error.advice().as_deref().unwrap_or_default()),
    }
}

#[test]
fn what_never_fits_is_refused_with_the_numbers_and_a_help() {
    let room = Fixture::new();
    let requested = |instances: u32, resources: serde_json::Value| {
        let job = job("big", instances, &resources);
        output(ask(&mut room.enter(&job), &job.1, true))
    };
    let gpu = |count: u32| json!({"gpu": {"count": count, "first": 0, "vendor": "nvidia"}});
    assert_snapshot!(
        [
            requested(5, gpu(1)),
            requested(1, gpu(3)),
            requested(3, json!({"cpu_millis": 3500})),
            requested(1, json!({"memory_bytes": 17 * GIB})),
            requested(2, json!({"disk_bytes": 51 * GIB})),
            requested(1, json!({"cpu_millis": 9000, "memory_bytes": 17 * GIB})),
            requested(3, json!({"cpu_millis": 4000, "memory_bytes": 9 * GIB})),
        ]
        .join("\n\n"),
        @r"
    the job needs 5 GPUs, this host has 2
    run fewer instances with `--scale worker=2`, or without GPUs with `--no-gpu`

    the job needs 3 GPUs, this host has 2
    run without GPUs with `--no-gpu`

    the job needs 10.5 CPUs, this host has 8
    run fewer instances with `--scale worker=2`

    the job needs 17 GiB of memory, this host has 16 GiB
    ask for less memory

    the job needs 102 GiB of disk, this host has 100 GiB
    run fewer instances with `--scale worker=1`

    the job needs 9 CPUs and 17 GiB of memory, this host has 8 and 16 GiB
    ask for fewer CPUs and less memory

    the job needs 12 CPUs and 27 GiB of memory, this host has 8 and 16 GiB
    run fewer instances with `--scale worker=1`
    "
    );
}

#[test]
fn what_does_not_fit_now_is_refused_or_waits() {
    let room = Fixture::new();
    let (first, second, third) = (cpus("first", 6), cpus("second", 4), cpus("third", 1));
    let mut one = room.enter(&first);
    assert_eq!(output(ask(&mut one, &first.1, false)), "admitted");
    let mut two = room.enter(&second);
    assert_snapshot!(output(ask(&mut two, &second.1, false)), @r"
    the job needs 4 CPUs, and 2 of 8 are free: `first.1` has 6 CPUs
    wait for it with `--queue`, or run fewer instances with `--scale ROLE=N`
    ");
    assert_snapshot!(output(ask(&mut two, &second.1, true)), @"waits at place 1: needs 4 CPUs, and 2 of 8 are free: `first.1` has 6 CPUs");
    // First come, first served: though it would fit, it would keep the one before it waiting.
    let mut three = room.enter(&third);
    assert_snapshot!(output(ask(&mut three, &third.1, true)), @"waits at place 2: needs 1 CPU, and 0 of 8 are free: `first.1` has 6 CPUs, `second.1` waits for 4 CPUs");
    // A job that has not requested resources does not make others wait.
    let fourth = cpus("fourth", 8);
    let _entered = room.enter(&fourth);
    let fifth = cpus("fifth", 1);
    assert!(output(ask(&mut room.enter(&fifth), &fifth.1, true)).starts_with("waits at place 3"));
    // A job without scarce resources does not wait.
    let memory = job("memory", 1, &json!({"memory_bytes": GIB}));
    assert_eq!(output(ask(&mut room.enter(&memory), &memory.1, false)), "admitted");
    let nothing = job("nothing", 9, &json!({}));
    assert_eq!(output(ask(&mut room.enter(&nothing), &nothing.1, false)), "admitted");
    drop(one);
    assert_eq!(output(ask(&mut two, &second.1, true)), "admitted");
    assert_eq!(output(ask(&mut three, &third.1, true)), "admitted");
    assert_eq!(output(ask(&mut two, &second.1, true)), "admitted");
}

#[test]
fn a_port_belongs_to_one_job() {
    let room = Fixture::new();
    let with_port = |name: &str| {
        let plan = sample::plan(&json!({"roles": [{"name": "web", "ports": [
            {"label": "http", "number": 8080, "count": 1, "auto": false, "publish": "none"}]}]}));
        (JobId { name: name.to_owned(), run: 1 }, plan)
    };
    let (one, two) = (with_port("one"), with_port("two"));
    let entered = room.enter(&one);
    let refused = Admission::enter(
        room.ledger.clone(),
        Rules::default(),
        &two.0,
        &claim::of(&two.1),
        PastUse::default(),
    )
    .unwrap_err();
    assert_eq!(refused.to_string(), "port 8080 belongs to `one.1`");
    drop(entered);
    room.enter(&two);
}

#[test]
fn of_many_that_ask_at_once_no_more_are_admitted_than_fit() {
    let room = Fixture::new();
    let admitted: Vec<Admission> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..24)
            .map(|number| {
                let room = &room;
                scope.spawn(move || {
                    let job = cpus(&format!("j{number}"), 1);
                    let mut admission = room.enter(&job);
                    let answer = ask(&mut admission, &job.1, true).unwrap();
                    (admission, answer == AdmissionOutcome::Admitted)
                })
            })
            .collect();
        // A job that waits keeps its place.
        let all: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        all.into_iter().filter_map(|(admission, admitted)| admitted.then_some(admission)).collect()
    });
    assert!(!admitted.is_empty() && admitted.len() <= 8, "{}", admitted.len());
}

/// Entries of others, as their supervisors would have written them.
fn entry(ledger: &Ledger, name: &str, uid: u32, cpus: u64, more: impl FnOnce(&mut Entry)) -> Entry {
    let claim = Claim { cpu_millis: cpus * 1000, ..Claim::default() };
    let (mut entry, _) =
        ledger.enter(&JobId { name: name.to_owned(), run: 1 }, &claim, PastUse::default()).unwrap();
    (entry.uid, entry.state) = (uid, EntryState::Waiting);
    more(&mut entry);
    entry
}

/// The names of those that wait, in their order.
fn in_order(rules: &str, entries: &[Entry], now: u64) -> String {
    let rules = Rules::of_test(rules);
    let order = Order::new(&rules, entries, &machine(), now);
    let mut waiting: Vec<&Entry> =
        entries.iter().filter(|entry| entry.state == EntryState::Waiting).collect();
    waiting.sort_by(|one, other| order.compare(one, other));
    waiting.iter().map(|entry| entry.id.trim_end_matches(".1")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_higher_priority_comes_first_within_the_limit_of_its_user() {
    let Fixture { _dir, ledger } = Fixture::new();
    let of = |name, uid, priority| entry(&ledger, name, uid, 1, |entry| entry.claim.priority = priority);
    let entries =
        [of("a", 1001, 0), of("b", 1002, 100), of("c", 1001, 5), of("d", 1001, -1), of("e", 1001, 5)];
    assert_eq!(in_order("", &entries, 0), "b c e a d");
    assert_eq!(in_order("limits: {users: {bob: {priority: 0}}}", &entries, 0), "c e a b d");
    assert_eq!(in_order("limits: {groups: {students: {priority: 0}}}", &entries, 0), "a b c e d");
}

#[test]
fn who_used_less_comes_first() {
    let Fixture { _dir, ledger } = Fixture::new();
    let past = |at, gpu_seconds| PastUse { at, gpu_seconds, cpu_seconds: 0.0 };
    let of = |name, uid, past| entry(&ledger, name, uid, 1, |entry| entry.past = past);
    let rules = "fair_share: {half_life: 1h}";
    // Two hours later, the four hours of ada count one.
    let entries = [
        of("ada-1", 1001, past(0, 14400.0)),
        of("bob-1", 1002, past(7200, 3000.0)),
        of("ada-2", 1001, past(0, 14400.0)),
    ];
    assert_eq!(in_order(rules, &entries, 7200), "bob-1 ada-1 ada-2");
    let entries = [of("bob-2", 1002, past(7200, 4000.0)), of("ada-3", 1001, past(0, 14400.0))];
    assert_eq!(in_order(rules, &entries, 7200), "ada-3 bob-2");
    assert_eq!(in_order("", &entries, 7200), "bob-2 ada-3");
    // What runs counts too: bob has had half of the CPUs for two hours, and ada one of two GPUs for half an hour.
    let running = entry(&ledger, "running", 1002, 4, |entry| entry.state = EntryState::Admitted);
    let entries = [of("bob-3", 1002, past(0, 0.0)), of("ada-4", 1001, past(7200, 1800.0)), running];
    assert_eq!(in_order(rules, &entries, 7200), "ada-4 bob-3");
}

#[test]
fn limits_of_users_and_groups_hold_and_hold_up_no_others() {
    let room = Fixture::new();
    let uid = rustix::process::geteuid().as_raw();
    let limit = |text: &str| Rules::of_test(&format!("limits: {{users: {{{uid}: {text}}}}}"));
    let enter = |job: &(JobId, JobPlan), rules: Rules| {
        Admission::enter(room.ledger.clone(), rules, &job.0, &claim::of(&job.1), PastUse::default()).unwrap()
    };
    let (first, second) = (cpus("first", 3), cpus("second", 2));
    let mut one = enter(&first, limit("{cpu: 4, jobs: 5}"));
    assert_eq!(output(ask(&mut one, &first.1, true)), "admitted");
    let mut two = enter(&second, limit("{cpu: 4}"));
    let shown = |answer| output(answer).replace(&uid.to_string(), "UID");
    let waits = "needs 2 CPUs, and user `UID` has 3 of 4: `first.1`";
    assert_eq!(shown(ask(&mut two, &second.1, true)), format!("waits at place 1: {waits}"));
    assert!(shown(ask(&mut two, &second.1, false)).starts_with(&format!("the job {waits}")));
    assert_eq!(shown(ask(&mut two, &second.1, true)), format!("waits at place 1: {waits}"));
    // Another job, which is within its limits, passes it: 8 - 3 CPUs are free.
    let third = cpus("third", 5);
    let mut three = enter(&third, limit("{cpu: 8}"));
    assert_eq!(
        output(ask(&mut three, &third.1, true)),
        "waits at place 2: needs 5 CPUs, and 3 of 8 are free: `first.1` has 3 CPUs, `second.1` waits for 2 CPUs"
    );
    let mut three = enter(&third, limit("{cpu: 8, jobs: 1}"));
    assert_eq!(
        shown(ask(&mut three, &third.1, true)),
        "waits at place 1: user `UID` has 1 of 1 running jobs: `first.1`"
    );
    let never = shown(ask(&mut enter(&third, limit("{cpu: 4}")), &third.1, true));
    assert_eq!(
        never,
        "the job needs 5 CPUs, and user `UID` may have 4\nask for less, or have the limit in `/etc/jobc/queue.yaml` raised"
    );
    drop(one);
    assert_eq!(output(ask(&mut two, &second.1, true)), "admitted");
}
