//! A job that this program runs to see whether it can.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jobc_sys::error::describe_io;
use jobc_sys::run_with_timeout;

use super::Refusal;

/// How long a trivial job may take. A check times out later.
const JOB_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a job file with records in a temporary directory.
pub(super) fn run(job: &str) -> Result<(), Refusal> {
    let cannot = |path: &Path, error: &io::Error| Refusal {
        why: format!("cannot write to `{}`: {}", path.display(), describe_io(error)),
        fix: Some("set TMPDIR to a writable directory".to_owned()),
    };
    let directory = Scratch::new().map_err(|error| cannot(&std::env::temp_dir(), &error))?;
    let file = directory.0.join("job.yaml");
    fs::write(&file, job).map_err(|error| cannot(&file, &error))?;
    let mut command = Command::new("/proc/self/exe");
    command.args(["run", "--quiet"]).arg(&file);
    command.env("XDG_STATE_HOME", &directory.0).env("JOBC_COLOR", "never");
    match run_with_timeout::run(&mut command, JOB_TIMEOUT) {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(reason(&output.text)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Refusal {
            why: format!("the job has not ended after {} s", JOB_TIMEOUT.as_secs()),
            fix: None,
        }),
        Err(error) => Err(Refusal { why: describe_io(&error), fix: None }),
    }
}

/// The error of `jobc run`, and its advice.
fn reason(text: &str) -> Refusal {
    let mut lines = text.lines().filter(|line| !line.contains(": note: "));
    let why = lines.next().unwrap_or("it failed without a message");
    let why = why.strip_prefix("error: ").or_else(|| why.strip_prefix("jobc: ")).unwrap_or(why);
    let fix = lines.find_map(|line| line.trim_start().strip_prefix("= help: "));
    Refusal { why: why.to_owned(), fix: fix.map(str::to_owned) }
}

/// A directory of this user's own below the one for temporary files.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("jobc-doctor-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(path)),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_error_with_its_advice() {
        let check = |text: &str| {
            let Refusal { why, fix } = reason(text);
            (why, fix.unwrap_or_default())
        };
        assert_eq!(check("error: no\n = help: do this\n"), ("no".to_owned(), "do this".to_owned()));
        let ended = "jobc: note: something\njobc: doctor-run.1: could not start: `main-0`: no\n";
        assert_eq!(check(ended).0, "doctor-run.1: could not start: `main-0`: no");
        assert_eq!(check("").0, "it failed without a message");
    }
}
