use super::*;

fn turn(directory: &Path, slots: u32, number: u32) -> QueuePosition {
    QueuePosition { directory: directory.to_owned(), slots, number }
}

#[test]
fn concurrency_is_limited_and_order_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("turns");
    prepare(&directory, 4).unwrap();
    // Their supervisors start in another order than the jobs.
    let mut waiting: Vec<WaitingJob> =
        [3, 1, 0, 2].map(|number| WaitingJob::new(&turn(&directory, 2, number)).unwrap()).into();
    let mut take = |place: usize| waiting[place].try_take().unwrap();
    assert!(take(0).is_none() && take(1).is_none());
    let first = take(2).expect("job 0 is the first");
    assert!(take(0).is_none());
    let second = take(1).expect("job 1 has the other slot");
    assert!(take(3).is_none(), "both slots are taken");
    drop(first);
    assert!(take(0).is_none(), "job 2 is before job 3");
    let third = take(3).expect("job 2 has the slot of job 0");
    drop(second);
    let fourth = take(0).expect("job 3 is the last");
    drop((third, fourth));
    assert!(!directory.exists());
}

#[test]
fn a_dead_job_in_the_queue_blocks_no_other() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), 3).unwrap();
    let mut last = WaitingJob::new(&turn(dir.path(), 1, 2)).unwrap();
    // Job 0 gives up, job 1 was killed: its file exists, and its lock is free.
    drop(WaitingJob::new(&turn(dir.path(), 1, 0)).unwrap());
    assert!(last.try_take().unwrap().is_none(), "job 1 may still come");
    let long_ago = std::time::SystemTime::now() - 2 * SUPERVISOR_START_TIMEOUT;
    File::open(queue_file(dir.path(), 1)).unwrap().set_modified(long_ago).unwrap();
    assert!(last.try_take().unwrap().is_some());
}

#[test]
fn one_that_waits_for_long_keeps_its_place() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), 2).unwrap();
    let mut first = WaitingJob::new(&turn(dir.path(), 1, 0)).unwrap();
    let long_ago = std::time::SystemTime::now() - 2 * SUPERVISOR_START_TIMEOUT;
    File::open(queue_file(dir.path(), 0)).unwrap().set_modified(long_ago).unwrap();
    let mut second = WaitingJob::new(&turn(dir.path(), 1, 1)).unwrap();
    assert!(second.try_take().unwrap().is_none());
    assert!(first.try_take().unwrap().is_some());
}
