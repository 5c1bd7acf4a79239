//! Errors of the disks that hold job records and state: which directory it is, and the variable that moves it.

use std::path::Path;

use rustix::io::Errno;

use super::JobDirectories;
use jobc_sys::error::{Error, errno_of, file_error};

/// The error of a file of a job: `what` (words that follow "cannot"), its path and the reason. If the disk is full or
/// read-only, the help names the directory and the variable that moves it.
pub fn storage_error(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let cause = file_error(what, path, error);
    let help = JobDirectories::standard().ok().and_then(|places| help(&places, path, errno_of(error)));
    Error { hints: help.into_iter().collect(), ..cause }
}

fn help(places: &JobDirectories, path: &Path, errno: Errno) -> Option<String> {
    let (what, directory, variable) = if path.starts_with(&places.records) || places.records.starts_with(path)
    {
        ("job records are", &places.records, Some("XDG_STATE_HOME"))
    } else if path.starts_with(&places.state) {
        // That of root is fixed.
        let movable = !places.state.starts_with("/run/jobc");
        ("the state of jobs is", &places.state, movable.then_some("XDG_RUNTIME_DIR"))
    } else {
        return None;
    };
    let wrong = match errno {
        Errno::NOSPC => "is full",
        Errno::DQUOT => "has no quota left for this user",
        Errno::ROFS => "is read-only",
        _ => return None,
    };
    let directory = directory.display();
    let free = (errno != Errno::ROFS).then(|| "free space there (`jobc gc` removes old jobs)".to_owned());
    let moved = variable.map(|variable| format!("set `{variable}` to a directory of yours on another disk"));
    let ways: Vec<String> = free.into_iter().chain(moved).collect();
    let ways = if ways.is_empty() { "remount it".to_owned() } else { ways.join(", or ") };
    Some(format!("{what} in `{directory}`, whose file system {wrong}; {ways}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_or_read_only_disk_is_named_with_the_variable_that_moves_it() {
        let places = JobDirectories {
            state: "/home/ada/run/jobc/jobs".into(),
            records: "/home/ada/.local/state/jobc/jobs".into(),
        };
        let help_for = |path: &str, errno| help(&places, Path::new(path), errno);
        assert_eq!(
            help_for("/home/ada/.local/state/jobc/jobs/train.1/job.json", Errno::NOSPC).unwrap(),
            "job records are in `/home/ada/.local/state/jobc/jobs`, whose file system is full; free space there \
             (`jobc gc` removes old jobs), or set `XDG_STATE_HOME` to a directory of yours on another disk"
        );
        // A parent of the records cannot be created.
        assert_eq!(
            help_for("/home/ada/.local/state", Errno::ROFS).unwrap(),
            "job records are in `/home/ada/.local/state/jobc/jobs`, whose file system is read-only; \
             set `XDG_STATE_HOME` to a directory of yours on another disk"
        );
        assert_eq!(
            help_for("/home/ada/run/jobc/jobs/train.1/build", Errno::DQUOT).unwrap(),
            "the state of jobs is in `/home/ada/run/jobc/jobs`, whose file system has no quota left for this user; \
             free space there (`jobc gc` removes old jobs), or set `XDG_RUNTIME_DIR` to a directory of yours on \
             another disk"
        );
        let root = JobDirectories { state: "/run/jobc/jobs".into(), records: "/root/r".into() };
        assert_eq!(
            help(&root, Path::new("/run/jobc/jobs/a.1"), Errno::ROFS).unwrap(),
            "the state of jobs is in `/run/jobc/jobs`, whose file system is read-only; remount it"
        );
        assert_eq!(help_for("/home/ada/run/jobc/jobs/train.1", Errno::NOENT), None);
        assert_eq!(help_for("/data/x", Errno::NOSPC), None);
    }
}
