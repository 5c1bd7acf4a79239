use jobc_gpu::lease::{Sharing, Slice, Slot};
use jobc_schema::gpu::{Enforcement, Vendor};

use super::*;

fn turns(ledger: &Ledger, name: &str, cards: &[u32]) -> Turns {
    let slice = Slice {
        memory_bytes: Some(1),
        cores_percent: None,
        by: Sharing::Time,
        enforced_by: Enforcement::Nothing,
        cards: vec![],
    };
    let slot = |gpu: &u32| Slot {
        device: DeviceId { vendor: Vendor::Nvidia, gpu: *gpu, mig: None },
        name: gpu.to_string(),
        slice: Some(slice.clone()),
    };
    let leased = GpuLease { slots: cards.iter().map(slot).collect(), ..GpuLease::default() };
    Turns::new(ledger.clone(), &JobId { name: name.to_owned(), run: 1 }, leased, Duration::ZERO)
}

/// Lets each look once, as if it were due, and returns what becomes of their turns.
fn look(jobs: &mut [Turns]) -> Vec<Option<TurnChange>> {
    let look = |turns: &mut Turns| {
        turns.due = Instant::now();
        turns.look().unwrap()
    };
    jobs.iter_mut().map(look).collect()
}

#[test]
fn turns_go_around_and_end_only_where_another_waits() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(directory.path());
    let mut jobs = ["a", "b", "c"].map(|name| turns(&ledger, name, &[0]));
    jobs[0].wait().unwrap();
    assert_eq!(look(&mut jobs), [Some(TurnChange::Begins), None, None]);
    assert_eq!(look(&mut jobs), [None, None, None], "alone, it keeps the turn");
    jobs[1].wait().unwrap();
    jobs[2].wait().unwrap();
    let mut order = String::new();
    for _ in 0..6 {
        for number in 0..3 {
            match look(&mut jobs[number..=number])[0] {
                Some(TurnChange::Begins) => order.push(['a', 'b', 'c'][number]),
                Some(TurnChange::Ends) => jobs[number].wait().unwrap(),
                None => {}
            }
            let running = jobs.iter().filter(|turns| matches!(turns.state, State::Runs { .. })).count();
            assert!(running <= 1);
        }
    }
    assert!(order.starts_with("bcabc"), "{order}");
}

#[test]
fn a_job_has_the_turn_on_all_its_cards_or_on_none() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(directory.path());
    let mut jobs =
        [turns(&ledger, "one", &[0]), turns(&ledger, "both", &[0, 1]), turns(&ledger, "other", &[1])];
    for turns in &mut jobs {
        turns.wait().unwrap();
    }
    // `both` waits for card 0 and has no lock on card 1 meanwhile; `other` does not pass it.
    assert_eq!(look(&mut jobs), [Some(TurnChange::Begins), None, None]);
    jobs[0].leave();
    assert_eq!(look(&mut jobs), [None, Some(TurnChange::Begins), None]);
    jobs[1].leave();
    assert_eq!(look(&mut jobs), [None, None, Some(TurnChange::Begins)]);
}

#[test]
fn a_killed_supervisor_holds_up_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(directory.path());
    let mut runs = turns(&ledger, "runs", &[0]);
    let mut waits = turns(&ledger, "waits", &[0]);
    let mut last = turns(&ledger, "last", &[0]);
    for turns in [&mut runs, &mut waits, &mut last] {
        turns.wait().unwrap();
    }
    assert_eq!(runs.look().unwrap(), Some(TurnChange::Begins));
    assert_eq!(last.look().unwrap(), None);
    // As after SIGKILL: the file of the one that waited exists, and its lock is free.
    let State::Waits { name, .. } = &waits.state else { panic!("it waits") };
    let path = directory.path().join(name);
    let text = std::fs::read(&path).unwrap();
    drop((runs, waits));
    std::fs::write(&path, text).unwrap();
    assert!(last.take_changes(), "the kernel tells that the lock was closed");
    assert_eq!(look(std::slice::from_mut(&mut last)), [Some(TurnChange::Begins)]);
    assert!(!path.exists());
}
