//! `jobc why`: traces a line of a built file to its cause, and a line of a job file to its effects.

mod cause;
mod effect;
mod file_line;

use jobc_compiler::compile::{build, plan};
use jobc_compiler::diagnostic::Sink;

use crate::args::{FormatArg, WhyArgs};
use crate::input::{Input, InputError, JOB_FILE_NAMES};
use crate::outcome::Outcome;
use crate::settings::default_target;
use crate::{report, terminal};

use crate::origins::source_map;
use file_line::FileLine;

pub(crate) fn run(args: &WhyArgs, format: FormatArg) -> Outcome {
    match answer(args, format) {
        Ok(outcome) => outcome,
        Err(why) => super::report_input_error(&why),
    }
}

fn answer(args: &WhyArgs, format: FormatArg) -> Result<Outcome, InputError> {
    let given = args.job.job.as_deref().map_or("", camino::Utf8Path::as_str);
    let place = FileLine::parse(given)?;
    if let Some((directory, map)) = source_map::above(&place.file)? {
        let causes = cause::of_line(&place, &directory, &map)?;
        if format == FormatArg::Json {
            terminal::print(&format!("{:#}\n", cause::json(&place, &causes)));
        } else {
            terminal::print(&cause::text(&causes));
        }
        return Ok(Outcome::Success);
    }
    effects(args, &place, format)
}

/// The job file next to a targets file; `None` for that of the current directory.
fn beside(targets: &camino::Utf8Path) -> Option<camino::Utf8PathBuf> {
    JOB_FILE_NAMES.iter().map(|name| targets.with_file_name(name)).find(|path| path.exists())
}

/// The effects of a line of a job file, or of its targets file: the job is compiled, and nothing is written.
fn effects(args: &WhyArgs, place: &FileLine, format: FormatArg) -> Result<Outcome, InputError> {
    let mut job_args = args.job.clone();
    let of_target = matches!(place.file.file_name(), Some("targets.yaml" | "targets.yml"));
    job_args.job = if of_target { beside(&place.file) } else { Some(place.file.clone()) };
    if of_target {
        job_args.targets = Some(place.file.clone());
    }
    let mut input = Input::read(&job_args)?;
    let output = super::build::OutputDirectory::new(args.output.as_deref(), &input.directory)?;
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let to_job = |_: &str| camino::Utf8PathBuf::from("../../..");
    let mut request = input.request(&job_args, &to_job);
    request.default_target = default_target();
    let mut output = output;
    let mut outputs = vec![];
    if let Some(planned) = plan(&mut sources, &request, &mut sink) {
        output.several = planned.jobs.iter().any(|job| !job.matrix.is_empty());
        outputs = build(&sources, planned, &request, &mut sink);
    }
    if sink.has_errors() {
        return Ok(report::findings(&sources, sink, format, false));
    }
    let source = sources.get(if of_target { input.targets.unwrap_or(input.job) } else { input.job });
    let effects = effect::of_line(place, source, of_target, &outputs, &output)?;
    if format == FormatArg::Json {
        terminal::print(&format!("{:#}\n", effect::json(place, &effects)));
    } else {
        terminal::print(&effect::text(place, &effects));
    }
    Ok(Outcome::Success)
}
