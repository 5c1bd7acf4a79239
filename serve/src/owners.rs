//! Who started which job through this server, as the audit file says.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::audit::Line;

/// What a request with an idempotency key has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// These jobs.
    Jobs(Vec<String>),
    /// The key was used for another body.
    Otherwise,
}

#[derive(Default)]
struct Known {
    owners: BTreeMap<String, String>,
    /// The digest of the body and the jobs, by user and the digest of the key.
    keys: BTreeMap<(String, String), (String, Vec<String>)>,
}

/// The owners of jobs, and the idempotency keys that they used.
#[derive(Default)]
pub(crate) struct Owners(Mutex<Known>);

impl Owners {
    /// Notes a line of the audit file.
    pub(crate) fn note(&self, line: &Line) {
        if line.started.is_empty() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for job in &line.started {
            known.owners.insert(job.clone(), line.user.clone());
        }
        if let Some([key, body]) = &line.key {
            known.keys.insert((line.user.clone(), key.clone()), (body.clone(), line.started.clone()));
        }
    }

    /// Whether a user started a job, by its ID or that of its sweep.
    pub(crate) fn is_of(&self, user: &str, job: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.owners.get(job).is_some_and(|owner| owner == user)
    }

    /// The user who started a job through this server.
    pub(crate) fn of_job(&self, job: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).owners.get(job).cloned()
    }

    /// What a request with the same key has started.
    pub(crate) fn of_key(&self, user: &str, [key, body]: &[String; 2]) -> Option<Started> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, jobs) = known.keys.get(&(user.to_owned(), key.clone()))?;
        Some(if first == body { Started::Jobs(jobs.clone()) } else { Started::Otherwise })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_for_one_body_of_one_user() {
        let owners = Owners::default();
        let key = |key: &str, body: &str| [key.to_owned(), body.to_owned()];
        owners.note(&Line {
            user: "ada".to_owned(),
            started: vec!["train.1".to_owned()],
            key: Some(key("k", "b")),
            ..Line::default()
        });
        assert!(owners.is_of("ada", "train.1") && !owners.is_of("eve", "train.1"));
        assert_eq!(owners.of_key("ada", &key("k", "b")), Some(Started::Jobs(vec!["train.1".to_owned()])));
        assert_eq!(owners.of_key("ada", &key("k", "other")), Some(Started::Otherwise));
        assert_eq!(owners.of_key("eve", &key("k", "b")), None);
    }
}
