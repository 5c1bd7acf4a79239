//! How many files may be open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A supervisor holds some file descriptors for each task; the limit of a task stays as it was.
pub(super) fn raise_open_files() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    let before = (number(limit.current), number(limit.maximum));
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    before
}
