//! What this user's jobs had of the host, by their records.

use jobc_place::time::Time;

use super::ledger::PastUse;
use super::order::{decay, float};
use super::rules::FairShare;
use crate::directory::JobDirectories;
use crate::record::Record;

/// After so many half-lives, use counts less than a thousandth.
const MAX_HALF_LIVES: u64 = 10;

/// The use of the jobs of this user that have ended.
pub fn of_records(places: &JobDirectories, share: FairShare, now: Time) -> PastUse {
    let half_life = share.half_life.0;
    let mut past = PastUse { at: now.millis() / 1000, ..PastUse::default() };
    // Records that cannot be read count nothing.
    for id in places.list().unwrap_or_default() {
        let directory = places.job(&id);
        let changed = std::fs::metadata(directory.record_file()).and_then(|file| file.modified());
        let is_old = |time| now.since(Time::of(time)).as_secs() / half_life >= MAX_HALF_LIVES;
        if changed.is_ok_and(is_old) {
            continue;
        }
        if let Ok(Some(record)) = Record::read(&directory) {
            add(&mut past, &record, half_life, now);
        }
    }
    past
}

fn add(past: &mut PastUse, record: &Record, half_life: u64, now: Time) {
    let (Some(started), Some(ended)) = (record.started, record.ended) else { return };
    let weight = decay(now.since(ended).as_secs(), half_life) * ended.since(started).as_secs_f64();
    past.gpu_seconds += float(record.claim.gpus) * weight;
    past.cpu_seconds += float(record.claim.cpu_millis) / 1000.0 * weight;
}
