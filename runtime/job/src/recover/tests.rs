use std::path::Path;

use serde_json::{Value, json};

use super::*;
use jobc_container::secret::Secret;
use jobc_container::secret_directory::SecretDirectory;

/// A job with a secret in memory, by its record and submission.
fn job(places: &JobDirectories, record: &Value, submission: &Value) -> (Directory, SecretDirectory) {
    let directory = places.create("a").unwrap();
    let mut whole = json!({
        "version": 1, "id": directory.id, "source": "/job.yaml", "target": "local", "owner": 0, "state": "running",
        "submitted": "2026-11-21T13:31:53.250Z", "attempt": 1, "network": "none",
        "claim": {"cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "disk_bytes": 0}, "tasks": [],
    });
    for (key, value) in record.as_object().unwrap() {
        whole[key] = value.clone();
    }
    std::fs::write(directory.record_file(), whole.to_string()).unwrap();
    std::fs::write(directory.submission_file(), submission.to_string()).unwrap();
    let place = directory.secrets().unwrap();
    place.create_file(Path::new("files/a/0"), &Secret::new("s3cr3t"), 0o400, None).unwrap();
    (directory, place)
}

fn places() -> (tempfile::TempDir, JobDirectories) {
    let dir = tempfile::tempdir().unwrap();
    let places = JobDirectories { state: dir.path().join("state"), records: dir.path().join("records") };
    (dir, places)
}

#[test]
fn a_job_that_was_killed_leaves_no_secret() {
    let (_dir, places) = places();
    let (directory, place) = job(&places, &json!({}), &json!({}));
    let lost = recover_lost_jobs(&places).unwrap();
    assert_eq!(lost, [LostJob { id: directory.id.clone(), not_removed: vec![] }]);
    assert_eq!(Record::read(&directory).unwrap().unwrap().state, JobState::Lost);
    assert!(!place.path().exists() && !directory.state.exists());
}

#[test]
fn a_job_killed_after_its_end_leaves_no_secret() {
    for (keep, stays) in [(false, false), (true, true)] {
        let (_dir, places) = places();
        let (directory, place) = job(&places, &json!({"state": "succeeded"}), &json!({"keep": keep}));
        assert!(recover_lost_jobs(&places).unwrap().is_empty());
        assert!(!place.path().exists());
        assert_eq!(directory.state.exists(), stays);
    }
}

#[test]
fn a_job_with_a_supervisor_keeps_everything() {
    let (_dir, places) = places();
    let (directory, place) = job(&places, &json!({}), &json!({}));
    let lock = directory.try_lock().unwrap().unwrap();
    assert!(recover_lost_jobs(&places).unwrap().is_empty());
    assert!(place.path().exists() && directory.state.exists());
    drop(lock);
    recover_lost_jobs(&places).unwrap();
    assert!(!place.path().exists());
}

/// A truncated record does not hide the job; a record of a newer jobc is left alone.
#[test]
fn a_job_with_a_damaged_record_is_found() {
    let (_dir, places) = places();
    let (directory, _place) = job(&places, &json!({}), &json!({}));
    let whole = std::fs::read(directory.record_file()).unwrap();
    let lock = directory.try_lock().unwrap().unwrap();
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        std::fs::write(directory.record_file(), &whole[..length]).unwrap();
        let record = Record::read(&directory).unwrap().unwrap();
        assert_eq!((record.state, record.is_damaged), (JobState::Running, true), "{length}");
        assert!(recover_lost_jobs(&places).unwrap().is_empty(), "it has a supervisor");
    }
    drop(lock);
    assert_eq!(recover_lost_jobs(&places).unwrap().len(), 1);
    let record = Record::read(&directory).unwrap().unwrap();
    assert_eq!((record.state, record.is_damaged), (JobState::Lost, false));
    let explanation = record.end.unwrap().explanation;
    assert_eq!(explanation, "lost: its record `job.json` was damaged, and it has no supervisor");
    std::fs::write(directory.record_file(), r#"{"version": 2}"#).unwrap();
    assert!(Record::read(&directory).unwrap_err().to_string().contains("is not a job's record"));
}
