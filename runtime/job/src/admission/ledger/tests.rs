use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn id(name: &str) -> JobId {
    JobId { name: name.to_owned(), run: 1 }
}

fn claim(cpu_millis: u64) -> Claim {
    Claim { cpu_millis, ..Claim::default() }
}

fn ledger() -> (tempfile::TempDir, Ledger) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(dir.path());
    (dir, ledger)
}

fn names(ledger: &Ledger) -> Vec<String> {
    ledger.file_names().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn an_entry_lives_as_long_as_its_process() {
    let (_dir, ledger) = ledger();
    let (mut one, others) = ledger.enter(&id("one"), &claim(1), PastUse::default()).unwrap();
    assert!(others.is_empty());
    let (two, others) = ledger.enter(&id("two"), &claim(2), PastUse::default()).unwrap();
    assert_eq!(others.len(), 1);
    assert_eq!(
        (others[0].id.as_str(), others[0].state, &others[0].claim),
        ("one.1", EntryState::Entered, &claim(1))
    );
    assert!(one.cmp_request(&two).is_lt() && !one.is_same_request(&two));
    ledger
        .decide_entry(&mut one, &Demands::default(), |_, others| {
            // The other has made no request.
            assert_eq!(others.len(), 0);
            Decision { state: EntryState::Admitted, leased: None, answer: Ok(()) }
        })
        .unwrap();
    let standings: Vec<_> =
        ledger.entries().unwrap().into_iter().map(|entry| (entry.id, entry.state)).collect();
    assert_eq!(
        standings,
        [("one.1".to_owned(), EntryState::Admitted), ("two.1".to_owned(), EntryState::Entered)]
    );
    drop(one);
    drop(two);
    assert!(ledger.entries().unwrap().is_empty());
    assert!(names(&ledger).is_empty());
}

#[test]
fn entries_of_dead_processes_are_ignored_and_removed() {
    let (dir, ledger) = ledger();
    let (entry, _) = ledger.enter(&id("dead"), &claim(1), PastUse::default()).unwrap();
    let name = names(&ledger).remove(0);
    let text = std::fs::read(dir.path().join(&name)).unwrap();
    drop(entry);
    // As after SIGKILL: the file exists, and its lock is free.
    std::fs::write(dir.path().join(&name), text).unwrap();
    assert!(ledger.entries().unwrap().is_empty());
    assert!(names(&ledger).is_empty());
}

#[test]
fn strange_files_of_others_are_passed_over() {
    let (dir, ledger) = ledger();
    let at = |name: &str| dir.path().join(name);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("admitted-1-fifo"),
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/etc/passwd", at("admitted-2-link")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("waiting-2-device")).unwrap();
    std::fs::create_dir(at("waiting-3-directory")).unwrap();
    std::fs::write(at("admitted-4-text"), "{").unwrap();
    std::fs::write(at("chosen-4-text"), r#"{"id": "", "ticket": 1, "claim": 7}"#).unwrap();
    let huge = File::create(at("admitted-5-huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    std::fs::write(at("something else"), "x").unwrap();
    assert!(ledger.entries().unwrap().is_empty());
    let (entry, others) = ledger.enter(&id("one"), &claim(1), PastUse::default()).unwrap();
    assert!(others.is_empty());
    drop(ledger.choose_ports(|taken| Ok(vec![u16::from(taken(1))])).unwrap());
    drop(entry);
    assert!(at("something else").exists() && at("admitted-5-huge").exists());
}

#[test]
fn a_stuck_lock_only_delays() {
    let (dir, ledger) = ledger();
    let held = File::open(dir.path()).unwrap();
    rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
    let begun = Instant::now();
    let (_entry, _) = ledger.enter(&id("one"), &claim(1), PastUse::default()).unwrap();
    assert!(begun.elapsed() >= LOCK_TIMEOUT && begun.elapsed() < 3 * LOCK_TIMEOUT, "{:?}", begun.elapsed());
}

#[test]
fn chosen_ports_are_kept_until_the_choice_is_dropped() {
    let (dir, ledger) = ledger();
    let are_taken = |ports: &[u16]| {
        let mut answer = vec![];
        let none = ledger.choose_ports(|taken| {
            answer = ports.iter().map(|&port| taken(port)).collect();
            Ok(vec![])
        });
        assert!(none.unwrap().is_none());
        answer
    };
    let chosen = ledger.choose_ports(|_| Ok(vec![20_000, 20_001])).unwrap();
    assert_eq!(are_taken(&[20_000, 20_001, 20_002]), [true, true, false]);
    // The job has entered with them before its command drops them.
    let own = Claim { ports: vec![20_000, 8080], ..Claim::default() };
    let (entry, others) = ledger.enter(&id("own"), &own, PastUse::default()).unwrap();
    assert!(others.is_empty());
    let name = names(&ledger).into_iter().find(|name| name.starts_with("chosen-")).unwrap();
    let text = std::fs::read(dir.path().join(&name)).unwrap();
    drop(chosen);
    assert_eq!(are_taken(&[20_000, 20_001, 8080]), [true, false, true]);
    drop(entry);
    // As after SIGKILL: the file exists, and its lock is free.
    std::fs::write(dir.path().join(&name), text).unwrap();
    assert_eq!(are_taken(&[20_000]), [false]);
    assert!(names(&ledger).is_empty());
}

#[test]
fn the_directory_is_world_writable() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("jobc");
    create_world_writable(&directory).unwrap();
    assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o7777, 0o1777);
    create_world_writable(&directory).unwrap();
    assert_eq!(create_world_writable(&dir.path().join("absent/jobc")), Err(Errno::NOENT));
    std::fs::remove_dir(&directory).unwrap();
    std::os::unix::fs::symlink("/tmp", &directory).unwrap();
    assert_eq!(create_world_writable(&directory), Err(Errno::NOTDIR));
}

#[test]
fn many_enter_at_once() {
    let (_dir, ledger) = ledger();
    let entries: Vec<Entry> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|number| {
                let ledger = &ledger;
                scope.spawn(move || {
                    ledger.enter(&id(&format!("j{number}")), &claim(1), PastUse::default()).unwrap().0
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ledger.entries().unwrap().len(), 16);
    drop(entries);
    assert!(names(&ledger).is_empty());
}
