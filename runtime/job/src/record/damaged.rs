//! The replacement for a record that was truncated by a full disk, a crash of the host or an editor.
//!
//! The job may still run. It is listed and can be stopped: its supervisor listens and writes its record anew whenever
//! something changes. Without a supervisor it is recovered as a lost job.

use std::os::unix::fs::MetadataExt;

use serde_json::error::Category;

use super::{JobState, Record};
use crate::control::Connection;
use crate::directory::Directory;
use crate::submission::Submission;
use jobc_place::time::Time;
use jobc_sys::process::Process;

/// Whether a text is not JSON. JSON that is not a record may be from a newer jobc and is kept.
pub(super) fn is_damaged(error: &serde_json::Error) -> bool {
    matches!(error.classify(), Category::Eof | Category::Syntax)
}

/// The facts that are known without the record.
pub(super) fn stand_in(directory: &Directory) -> Record {
    let metadata = std::fs::metadata(&directory.record).ok();
    let submission = std::fs::read(directory.submission_file()).unwrap_or_default();
    let submission = serde_json::from_slice::<Submission>(&submission).ok();
    let supervisor = Connection::open(directory).ok().flatten().and_then(|connection| connection.peer());
    Record {
        version: 1,
        id: directory.id.clone(),
        directory: submission.as_ref().map(|submission| submission.directory.clone()).unwrap_or_default(),
        sweep: submission.as_ref().and_then(|submission| submission.sweep.clone()),
        source: submission.map(|submission| submission.source).unwrap_or_default(),
        owner: metadata.as_ref().map_or_else(|| rustix::process::getuid().as_raw(), MetadataExt::uid),
        state: JobState::Running,
        supervisor: supervisor.and_then(Process::of),
        submitted: metadata.and_then(|data| data.modified().ok()).map_or_else(Time::now, Time::of),
        attempt: 1,
        notes: vec!["its record `job.json` is damaged".to_owned()],
        is_damaged: true,
        ..Record::default()
    }
}
