//! `jobc submit --follow`: the output of a job until it ends, and why it waits. Ctrl-C detaches.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jobc_remote::place::{LogItem, LogRequest};
use jobc_remote::{Handle, Place};
use jobc_sys::signals::Signals;

use crate::runtime::commands::follow::printer::LineFormat;
use crate::runtime::commands::jobs::Result;
use crate::runtime::commands::task_lines::JobLines;
use crate::runtime::interruptible;
use crate::runtime::kept::{self, KeptOutput};
use crate::runtime::message::INTERRUPTED;
use crate::table::escape_control;
use crate::terminal;

/// How often to query why a job without output is waiting.
const WHY_INTERVAL: Duration = Duration::from_secs(5);

/// Shows a job until it ends; the exit code is that of `jobc wait`.
pub(super) fn follow(place: &dyn Place, target: &str, name: &str) -> Result<ExitCode> {
    let signals = Signals::block_forwarded()?;
    let handle = format!("{target}/{name}");
    let detach = || {
        terminal::eprint(&format!(
            "\njobc: detached; {handle} goes on. `jobc logs -f {handle}` follows it, `jobc stop {handle}` stops it\n"
        ));
        // The thread waits for the cluster.
        std::process::exit(INTERRUPTED.into());
    };
    interruptible::run(&signals, || follow_to_end(place, target, name), |_| detach())?
}

fn follow_to_end(place: &dyn Place, target: &str, name: &str) -> Result<ExitCode> {
    let handle = format!("{target}/{name}");
    let all = JobLines::new(LineFormat { prefix: true, ..LineFormat::default() }, false);
    let mut lines = all.of_job(&handle, std::iter::empty());
    let run = Handle { target: target.to_owned(), name: name.to_owned() };
    lines.keep(KeptOutput::open(&run));
    let mut shown = BTreeSet::new();
    let mut asked = Instant::now();
    let request = LogRequest { follow: true, ..LogRequest::default() };
    place.logs(name, &request, &mut |item| {
        if matches!(item, LogItem::Idle) && !lines.has_shown() && asked.elapsed() >= WHY_INTERVAL {
            asked = Instant::now();
            // Failed queries are repeated later.
            let detail = place.inspect(name).ok();
            if let Some(detail) = &detail {
                kept::note_reasons(&run, &detail.summary, &detail.reasons);
            }
            for reason in detail.map(|detail| detail.reasons).unwrap_or_default() {
                if shown.insert(reason.clone()) {
                    terminal::eprint(&format!("{handle}: {}\n", escape_control(&reason)));
                }
            }
        }
        lines.show(&item);
        ControlFlow::Continue(())
    })?;
    lines.finish();
    all.finish();
    let end = place.wait(name, &mut |_| ControlFlow::Continue(()))?;
    let Some(end) = end else { return Ok(ExitCode::SUCCESS) };
    terminal::eprint(&format!("{target}/{}: {}\n", end.name, escape_control(&end.end_text())));
    Ok(ExitCode::from(end.exit_code()))
}
