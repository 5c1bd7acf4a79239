//! `jobc plan`: prints the resolved plan, with all defaults.

use camino::Utf8PathBuf;
use jobc_compiler::compile::{plan, plan_json};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::emit;
use jobc_compiler::lower::OnRefusal;
use jobc_schema::Plan;

use crate::args::{Args, FormatArg, PlanArgs};
use crate::input::Input;
use crate::outcome::Outcome;
use crate::{report, terminal};

pub(crate) fn run(plan_args: &PlanArgs, args: &Args) -> Outcome {
    let mut input = match Input::read(&plan_args.job) {
        Ok(input) => input,
        Err(why) => return super::report_input_error(&why),
    };
    let to_job = |_: &str| Utf8PathBuf::from("../../..");
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let request = input.request(&plan_args.job, &to_job);
    let planned = plan(&mut sources, &request, &mut sink);
    let outcome = report::findings(&sources, sink, args.format, true);
    let Some(mut planned) = planned else { return outcome };
    if planned.on_refusal == OnRefusal::Skip {
        // No target was chosen, and the plans differ only in the name of the target: print one.
        let first = planned.jobs.first().map(|job| job.target.name.clone()).unwrap_or_default();
        planned.jobs.retain(|job| job.target.name == first);
    }
    let plan = Plan { version: 1, jobs: planned.jobs };
    if args.format == FormatArg::Json {
        terminal::print(&plan_json(&plan));
    } else {
        let value = serde_json::to_value(&plan).expect("a plan is plain JSON");
        terminal::print(&emit::to_yaml(&value));
    }
    outcome
}
