//! `jobc check`: prints all findings and writes nothing.

use camino::Utf8PathBuf;
use jobc_compiler::compile::{check_all, plan};
use jobc_compiler::diagnostic::{Severity, Sink};

use crate::args::{Args, CheckArgs, FormatArg};
use crate::input::Input;
use crate::outcome::Outcome;
use crate::{report, terminal};

pub(crate) fn run(check: &CheckArgs, args: &Args) -> Outcome {
    let mut input = match Input::read(&check.job) {
        Ok(input) => input,
        Err(why) => return super::report_input_error(&why),
    };
    let to_job = |_: &str| Utf8PathBuf::from("../../..");
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let request = input.request(&check.job, &to_job);
    if let Some(planned) = plan(&mut sources, &request, &mut sink) {
        check_all(&planned, &request, &mut sink);
    }
    let warned = sink.diagnostics().iter().any(|d| d.severity == Severity::Warning);
    let quiet = sink.diagnostics().is_empty();
    let outcome = report::findings(&sources, sink, args.format, false);
    if quiet && args.format == FormatArg::Text {
        terminal::eprint("no findings\n");
    }
    if warned && check.deny_warnings { Outcome::Errors } else { outcome }
}
