//! Many processes that ask for few GPUs at once, a third of which is killed.

use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;

use super::{GIB, JobId, JobPlan, sample};
use crate::admission::capacity::Capacity;
use crate::admission::ledger::{EntryState, Ledger};
use crate::admission::rules::Rules;
use crate::admission::{Admission, AdmissionOutcome, PastUse, claim};
use crate::submission::Submission;
use jobc_gpu::demand::Demands;
use jobc_gpu::sharing::SharingSupport;

const PROCESSES: u32 = 200;

/// The environment variable with the ledger's path and the number of the process.
const CHILD_VARIABLE: &str = "JOBC_TEST_ONE_OF_MANY";

/// How long all of it may take: a host that is busy otherwise needs some of it.
const TEST_TIMEOUT: Duration = Duration::from_secs(150);

#[test]
fn processes_never_share_a_gpu_also_when_they_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("ledger");
    std::fs::create_dir(&ledger).unwrap();
    let began = Instant::now();
    let start = |number: u32| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "admission::tests::many::one_of_many"]);
        command.env(CHILD_VARIABLE, format!("{number}:{}", dir.path().display()));
        (number, command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let processes: Vec<_> = (0..PROCESSES).map(start).collect();
    for (number, mut process) in processes {
        let status = loop {
            if let Some(status) = process.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > TEST_TIMEOUT {
                let _ = process.kill();
                panic!("process {number} is not served");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        if number % 3 == 0 {
            assert_eq!(status.signal(), Some(9), "process {number}");
        } else {
            assert!(status.success(), "process {number}: {status}");
            assert!(dir.path().join(format!("served-{number}")).exists(), "process {number}");
        }
    }
    let shared: Vec<PathBuf> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("shared-"))
        .collect();
    assert!(shared.is_empty(), "{shared:?}");
    // No job has a claim any more, including dead ones.
    let (id, plan) = job(0, 8);
    let mut all =
        Admission::enter(Ledger::at(&ledger), Rules::default(), &id, &claim::of(&plan), PastUse::default())
            .unwrap();
    assert_eq!(ask(&mut all, &plan, false), Some(AdmissionOutcome::Admitted));
    assert_eq!(Ledger::at(&ledger).entries().unwrap().len(), 1);
}

/// One of the processes: requests until it is admitted, checks that no other has its cards, and exits; every third one
/// is killed while it has them, or while it waits.
#[test]
#[ignore = "started by the test above, many times"]
fn one_of_many() {
    let which = std::env::var(CHILD_VARIABLE).unwrap();
    let (number, dir) = which.split_once(':').unwrap();
    let (number, dir): (u32, &Path) = (number.parse().unwrap(), dir.as_ref());
    let (id, plan) = job(number, if number % 10 == 1 { 3 } else { 1 });
    // Opened before the ledger: the kernel closes the file descriptors of a killed process in ascending order, so a card's
    // test lock ends before its lease.
    let cards: Vec<File> = (0..8).map(|card| open_card(dir, card)).collect();
    let mut admission = Admission::enter(
        Ledger::at(dir.join("ledger")),
        Rules::default(),
        &id,
        &claim::of(&plan),
        PastUse::default(),
    )
    .unwrap();
    // Some keep their place, the others try their luck.
    while ask(&mut admission, &plan, number.is_multiple_of(4)) != Some(AdmissionOutcome::Admitted) {
        if number % 6 == 3 {
            die();
        }
        std::thread::sleep(Duration::from_millis(u64::from(10 + number % 17)));
    }
    for slot in &admission.claim().leased.slots {
        hold(dir, number, slot.device.gpu, &cards[slot.device.gpu as usize]);
    }
    std::thread::sleep(Duration::from_millis(u64::from(number % 7)));
    if number.is_multiple_of(3) {
        die();
    }
    std::fs::write(dir.join(format!("served-{number}")), "").unwrap();
    drop(cards);
    drop(admission);
}

fn open_card(dir: &Path, card: u32) -> File {
    let path = dir.join(format!("card-{card}"));
    OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap()
}

/// Takes a test lock on a card; reports if another process has it.
fn hold(dir: &Path, number: u32, card: u32, file: &File) {
    if rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        std::fs::write(dir.join(format!("shared-{card}-by-{number}")), "").unwrap();
    }
}

fn die() -> ! {
    kill_process(getpid(), Signal::KILL).unwrap();
    unreachable!("SIGKILL cannot be survived")
}

fn job(number: u32, gpus: u32) -> (JobId, JobPlan) {
    let gpu = json!({"gpu": {"count": gpus, "first": 0, "vendor": "nvidia"}});
    let plan = sample::plan(&json!({"roles": [{"name": "a", "resources": gpu}]}));
    (JobId { name: format!("j{number}"), run: 1 }, plan)
}

/// Requests cards of a host of eight; `None` if the request is refused.
fn ask(admission: &mut Admission, plan: &JobPlan, queue: bool) -> Option<AdmissionOutcome> {
    let gpus = jobc_gpu::testing::host(&[&[0, 1, 2, 3], &[4, 5, 6, 7]]);
    let demands =
        Demands::of(plan, Submission::default().gpu_choices(), &gpus, &SharingSupport::default()).unwrap();
    let machine = Capacity { cpu_millis: 1, memory_bytes: GIB, gpus, disk_bytes: 1 };
    admission.request(plan, &demands, &machine, queue).ok()
}

#[test]
fn a_device_belongs_to_its_holder_whatever_the_ledger_says() {
    let dir = tempfile::tempdir().unwrap();
    let enter = |number| {
        let (id, plan) = job(number, 4);
        (
            Admission::enter(
                Ledger::at(dir.path()),
                Rules::default(),
                &id,
                &claim::of(&plan),
                PastUse::default(),
            )
            .unwrap(),
            plan,
        )
    };
    let ((mut one, plan), (mut other, _)) = (enter(1), enter(2));
    assert_eq!(ask(&mut one, &plan, false), Some(AdmissionOutcome::Admitted));
    // As if another user had removed its claim from the world-writable directory.
    let claims = || std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let admitted = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("admitted");
    std::fs::remove_file(claims().find(admitted).unwrap()).unwrap();
    assert!(
        Ledger::at(dir.path()).entries().unwrap().iter().all(|entry| entry.state != EntryState::Admitted)
    );
    assert_eq!(ask(&mut other, &plan, false), Some(AdmissionOutcome::Admitted));
    let cards = |admission: &Admission| -> Vec<u32> {
        admission.claim().leased.slots.iter().map(|slot| slot.device.gpu).collect()
    };
    assert_eq!((cards(&one), cards(&other)), (vec![0, 1, 2, 3], vec![4, 5, 6, 7]));
    let (mut third, _) = enter(3);
    assert_eq!(ask(&mut third, &plan, false), None);
    drop(one);
    assert_eq!(ask(&mut third, &plan, false), Some(AdmissionOutcome::Admitted));
}
