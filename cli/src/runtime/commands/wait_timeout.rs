//! `jobc wait --timeout`: ends the command, and nothing else, if the jobs have not ended in time.

use crate::runtime::args::jobs::WaitArgs;
use crate::terminal;

/// The exit code when the time is over: EX_TEMPFAIL of sysexits.h, which no job has.
const NOT_ENDED: i32 = 75;

/// Starts the clock.
pub(crate) fn begin(args: &WaitArgs) {
    let Some(timeout) = args.timeout else { return };
    let what = if args.jobs.is_empty() { "the job".to_owned() } else { args.jobs.join(", ") };
    std::thread::spawn(move || {
        std::thread::sleep(timeout);
        terminal::eprint(&format!("jobc: {what}: not ended after {}\n", humantime::format_duration(timeout)));
        // The others only wait.
        std::process::exit(NOT_ENDED);
    });
}
