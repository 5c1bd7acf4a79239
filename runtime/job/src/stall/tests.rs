use std::time::Duration;

use jobc_schema::plan::StallPlan;
use jobc_schema::stall::{StallAction, StallSign};

use super::{Counters, Finding, Watch};
use crate::metrics::GpuActivity;

/// What a task does in a second: lines, thousandths of a CPU, bytes of disks, bytes of its processes, and what its GPUs do.
#[derive(Clone, Copy)]
struct Second {
    lines: u32,
    cpu: u64,
    disk: u64,
    other: u64,
    gpu: Option<GpuActivity>,
}

const QUIET: Second = Second { lines: 0, cpu: 0, disk: 0, other: 0, gpu: None };

fn rules(signs: &[StallSign]) -> StallPlan {
    StallPlan { after_seconds: 600, signs: signs.to_vec(), action: StallAction::Report }
}

/// Lets a task do something for each second; returns the findings, each with its second. It is reported once.
fn watched(signs: &[StallSign], seconds: u64, mut does: impl FnMut(u64) -> Second) -> Vec<(u64, Finding)> {
    let (mut watch, mut counters, mut found) = (Watch::default(), Counters::default(), vec![]);
    watch.begin(0, &rules(signs), Duration::ZERO);
    (counters.cpu_usec, counters.disk_bytes) = (Some(0), Some(0));
    let mut other = 0;
    for second in 1..=seconds {
        let (now, does) = (Duration::from_secs(second), does(second));
        if does.lines > 0 {
            watch.wrote(0, now);
        }
        counters.cpu_usec = counters.cpu_usec.map(|usec| usec + does.cpu * 1000);
        counters.disk_bytes = counters.disk_bytes.map(|bytes| bytes + does.disk);
        other += does.other;
        counters.gpu = does.gpu;
        counters.other_bytes = watch.wants_bytes(0, now).then_some(other);
        watch.counted(0, counters, now);
        for finding in watch.check(now) {
            if matches!(finding, Finding::Stalled(..)) {
                watch.reported(0);
            }
            found.push((second, finding));
        }
    }
    found.retain(|(_, finding)| matches!(finding, Finding::Stalled(..)));
    found
}

const ALL: [StallSign; 5] = StallSign::ALL;
const DAY: u64 = 24 * 3600;

#[test]
fn a_task_that_stops_is_found_once() {
    let trains = |second: u64| if second < 1000 { Second { lines: 1, cpu: 900, ..QUIET } } else { QUIET };
    let signs = vec![StallSign::Logs, StallSign::Io, StallSign::Cpu];
    // A quarter of the time goes by before the bytes of its processes are read.
    assert_eq!(watched(&ALL, DAY, trains), [(1749, Finding::Stalled(0, signs))]);
}

#[test]
fn a_task_that_stops_again_is_found_again() {
    let stops = |second: u64| if second % 3000 < 100 { Second { lines: 1, ..QUIET } } else { QUIET };
    let found = watched(&ALL, 6000, stops);
    assert_eq!(found.len(), 2, "{found:?}");
}

/// A name, and what a task does in each second.
type Task = (&'static str, fn(u64) -> Second);

/// What healthy tasks do that are quiet in one way.
const HEALTHY: [Task; 9] = [
    ("computes", |_| Second { cpu: 1000, ..QUIET }),
    ("loads", |_| Second { disk: 50 << 20, cpu: 3, ..QUIET }),
    ("loads from a server", |_| Second { other: 20 << 20, cpu: 5, ..QUIET }),
    ("logs seldom", |second| Second { lines: u32::from(second.is_multiple_of(500)), ..QUIET }),
    ("works in bursts", |second| Second { cpu: if second % 590 < 5 { 1000 } else { 0 }, ..QUIET }),
    ("slow disk", |second| Second { disk: u64::from(second.is_multiple_of(300)) << 20, ..QUIET }),
    ("computes on a GPU", |_| Second { gpu: Some(GpuActivity::Works), ..QUIET }),
    ("small kernels now and then", |second| {
        let gpu = if second % 500 < 400 { GpuActivity::Spins } else { GpuActivity::Works };
        Second { cpu: 1000, gpu: Some(gpu), ..QUIET }
    }),
    ("waits for a GPU", |_| Second { cpu: 15, ..QUIET }),
];

/// A day of each, without a false alarm.
#[test]
fn healthy_tasks_that_are_quiet_are_left_alone() {
    for (name, does) in HEALTHY {
        let found = watched(&ALL, DAY, does);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

#[test]
fn a_frozen_job_is_not_quiet() {
    let mut watch = Watch::default();
    watch.begin(0, &rules(&ALL), Duration::ZERO);
    let counters = Counters { cpu_usec: Some(0), disk_bytes: Some(0), other_bytes: Some(0), gpu: None };
    for second in 1..1000 {
        let now = Duration::from_secs(second);
        if second < 500 {
            watch.restart(now);
        } else {
            watch.counted(0, counters, now);
        }
        assert!(watch.check(now).is_empty(), "{second}");
    }
}

#[test]
fn gpus_that_wait_explain_a_program_that_computes() {
    let hangs = |second: u64| {
        let gpu = if second < 1000 { GpuActivity::Works } else { GpuActivity::Spins };
        Second { cpu: 1000, gpu: Some(gpu), ..QUIET }
    };
    let signs = vec![StallSign::Logs, StallSign::Io, StallSign::Gpu];
    assert_eq!(watched(&ALL, 3000, hangs), [(1600, Finding::Stalled(0, signs))]);
    assert_eq!(watched(&[StallSign::Logs, StallSign::Cpu], 3000, hangs), []);
    // What is loaded meanwhile is work.
    let loads = |second: u64| Second { disk: 1 << 20, ..hangs(second) };
    assert_eq!(watched(&ALL, 3000, loads), []);
}

#[test]
fn nccl_explains_a_task_that_computes() {
    let mut watch = Watch::default();
    watch.begin(3, &rules(&ALL), Duration::ZERO);
    let mut asked = 0;
    for second in 1..=700 {
        let now = Duration::from_secs(second);
        watch.counted(
            3,
            Counters {
                cpu_usec: Some(second * 1_000_000),
                disk_bytes: Some(0),
                other_bytes: Some(0),
                gpu: None,
            },
            now,
        );
        for finding in watch.check(now) {
            assert_eq!((finding, second >= 600), (Finding::AskNccl(3), true));
            asked += 1;
        }
    }
    assert_eq!(asked, 1, "not more often than four times in ten minutes");
    watch.note_nccl(3, true);
    let found = watch.check(Duration::from_secs(701));
    assert_eq!(found, [Finding::Stalled(3, vec![StallSign::Logs, StallSign::Io, StallSign::Nccl])]);
    // Without NCCL's word, it may be a long computation.
    watch.note_nccl(3, false);
    assert!(watch.check(Duration::from_secs(702)).is_empty());
}

#[test]
fn what_cannot_be_seen_is_no_sign() {
    let mut watch = Watch::default();
    watch.begin(0, &rules(&ALL), Duration::ZERO);
    for second in 1..2000 {
        let now = Duration::from_secs(second);
        watch.counted(0, Counters::default(), now);
        assert!(watch.check(now).iter().all(|finding| *finding == Finding::AskNccl(0)), "{second}");
    }
}
