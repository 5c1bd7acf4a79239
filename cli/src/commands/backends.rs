//! `jobc backends`: which fields each backend supports, by the same checks as in a build.

pub(crate) mod conformance;
mod minimal_job;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::backend::capability::needs;
use jobc_compiler::backend::{Backend, Capability, Support};
use jobc_compiler::backends::table;
use jobc_compiler::compile::{Request, plan};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::files::MemoryFiles;
use jobc_compiler::lock::Locking;
use jobc_compiler::source::{Source, Sources};
use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;
use serde_json::{Value, json};

use crate::args::FormatArg;
use crate::input::{InputError, find_targets, read, shorten};
use crate::outcome::Outcome;
use crate::plugins::InstalledPlugin;
use crate::{plugins, report, terminal};

/// The targets to check.
pub(super) enum Selection {
    /// The built-in ones.
    BuiltIn,
    /// Targets with every setting that the built-in ones lack.
    Equipped,
    /// One of a targets file, or a built-in one.
    Named(Option<Source>, String),
}

/// The support of a backend: for its plain target, and whether target settings change it.
struct Answer {
    support: Support,
    with_setting: bool,
}

/// The support for one capability, in the order of the columns.
type Answers = Vec<(BackendName, Answer)>;

pub(crate) fn run(target: Option<&str>, format: FormatArg) -> Outcome {
    let ask = match target {
        None => Selection::BuiltIn,
        Some(target) => {
            let here = crate::input::absolute(Utf8Path::new(".")).ok();
            match here.as_deref().and_then(find_targets) {
                None => Selection::Named(None, target.to_owned()),
                Some(path) => match read(&path) {
                    Ok(text) => Selection::Named(Some(Source::new(path, text)), target.to_owned()),
                    Err(InputError(why)) => return super::report_input_error(&InputError(why)),
                },
            }
        }
    };
    let first = match plans(&minimal_job::job(Capability::Shm), &ask) {
        Ok(jobs) => jobs,
        Err((sources, sink)) => return report::findings(&sources, sink, format, true),
    };
    let columns: Vec<(&dyn Backend, &JobPlan)> = table()
        .iter()
        .filter_map(|backend| {
            let job = first.iter().find(|job| job.target.settings.backends.contains(&backend.name()))?;
            Some((*backend, job))
        })
        .collect();
    let rows: Vec<(&str, Answers)> = Capability::TABLE
        .iter()
        .map(|(capability, words)| (*words, answers(*capability, &ask, &columns)))
        .collect();
    // Next to the targets file, as for a job in this directory.
    let here = crate::input::absolute(Utf8Path::new(".")).ok();
    let targets = here.as_deref().and_then(find_targets).map(|path| shorten(&path));
    let directory = targets.as_deref().and_then(Utf8Path::parent).unwrap_or(Utf8Path::new(""));
    let plugins = plugins::installed(directory);
    if format == FormatArg::Json {
        terminal::print(&as_json(&columns, &rows, &plugins));
    } else {
        terminal::print(&(as_text(&columns, &rows) + &plugins_as_text(&plugins)));
    }
    Outcome::Success
}

/// The support of each backend for a job that requests a capability.
fn answers(capability: Capability, ask: &Selection, columns: &[(&dyn Backend, &JobPlan)]) -> Answers {
    let job = minimal_job::job(capability);
    let plain = plans(&job, ask).unwrap_or_default();
    let equipped = match ask {
        Selection::BuiltIn => plans(&job, &Selection::Equipped).unwrap_or_default(),
        _ => vec![],
    };
    columns
        .iter()
        .map(|(backend, _)| {
            let of = |jobs: &[JobPlan]| -> Option<Support> {
                let has = |job: &&JobPlan| job.target.settings.backends.contains(&backend.name());
                jobs.iter().filter(has).map(|job| support(*backend, capability, job)).max_by_key(rank)
            };
            let support =
                of(&plain).unwrap_or_else(|| Support::None("no such job can be planned".to_owned()));
            let with_setting = of(&equipped).is_some_and(|better| rank(&better) >= 2) && rank(&support) < 2;
            (backend.name(), Answer { support, with_setting })
        })
        .collect()
}

/// The support that a build of the job reports: the least for any of the places that request it.
fn support(backend: &dyn Backend, capability: Capability, job: &JobPlan) -> Support {
    let places = needs(job).into_iter().filter(|(needed, _)| *needed == capability);
    let answers = places.map(|(_, place)| backend.support_at(capability, &place, job));
    answers.min_by_key(rank).unwrap_or_else(|| backend.support(capability, job))
}

fn rank(support: &Support) -> u8 {
    match support {
        Support::None(_) => 0,
        Support::Lossy(_) => 1,
        Support::Plan | Support::Submit(_) => 2,
        Support::Full => 3,
    }
}

/// The plan of a job for each target.
pub(super) fn plans(job: &Value, ask: &Selection) -> Result<Vec<JobPlan>, (Sources, Sink)> {
    let mut sources = Sources::new();
    let job = sources.add(Source::new("example.json", job.to_string()));
    let (targets, only) = match ask {
        Selection::BuiltIn => {
            let text = json!({"version": 1, "targets": minimal_job::plain()}).to_string();
            (Some(Source::new("targets.json", text)), vec![])
        }
        Selection::Equipped => (Some(Source::new("targets.yaml", minimal_job::EQUIPPED)), vec![]),
        Selection::Named(targets, name) => (targets.clone(), vec![name.clone()]),
    };
    let targets = targets.map(|source| sources.add(source));
    let files = MemoryFiles::default();
    let to_job = |_: &str| Utf8PathBuf::from("../../..");
    let request = Request {
        targets,
        only_targets: only,
        locking: Locking::Ignored,
        ..Request::new(job, &files, &to_job)
    };
    let mut sink = Sink::new();
    let planned = plan(&mut sources, &request, &mut sink);
    planned.map(|planned| planned.jobs).ok_or((sources, sink))
}

fn word(answer: &Answer) -> &'static str {
    match &answer.support {
        _ if answer.with_setting => "setting",
        Support::Full => "yes",
        Support::Plan => "plan",
        Support::Submit(_) => "submit",
        Support::Lossy(_) => "lossy",
        Support::None(_) => "-",
    }
}

fn as_text(columns: &[(&dyn Backend, &JobPlan)], rows: &[(&str, Answers)]) -> String {
    let width = rows.iter().map(|(words, _)| words.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (backend, _) in columns {
        out += &format!("{:11} {}\n", backend.name().as_str(), backend.about());
    }
    out += &format!("\n{:width$}", "what a job may ask for");
    for (backend, _) in columns {
        out += &format!("  {:10}", backend.name().as_str());
    }
    out = format!("{}\n", out.trim_end());
    for (words, answers) in rows {
        let mut line = format!("{words:width$}");
        for (_, answer) in answers {
            line += &format!("  {:10}", word(answer));
        }
        out += line.trim_end();
        out.push('\n');
    }
    out + "\nyes: exactly; plan: by the runtime, from plan.json; submit: by `jobc submit`; setting: with a setting of the target;\n\
           lossy: only with --allow-lossy; -: refused\n\
           `jobc backends --format json` gives the reasons and the settings\n"
}

/// The plug-ins, which are not started here: what they support is shown by `jobc backend test`.
fn plugins_as_text(plugins: &[InstalledPlugin]) -> String {
    if plugins.is_empty() {
        return String::new();
    }
    let width = plugins.iter().map(|plugin| plugin.name.as_str().len()).max().unwrap_or(0);
    let mut out = "\nplug-ins, described by `jobc backend test NAME`\n".to_owned();
    for plugin in plugins {
        out += &format!("{:width$}  {}\n", plugin.name.as_str(), plugin.place);
    }
    out
}

fn as_json(
    columns: &[(&dyn Backend, &JobPlan)],
    rows: &[(&str, Answers)],
    plugins: &[InstalledPlugin],
) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|(words, answers)| {
            let answers: serde_json::Map<String, Value> = answers
                .iter()
                .map(|(backend, answer)| {
                    let why = match &answer.support {
                        Support::Submit(why) | Support::Lossy(why) | Support::None(why) => Some(why.clone()),
                        Support::Full | Support::Plan => None,
                    };
                    let support = if word(answer) == "-" { "no" } else { word(answer) };
                    (backend.to_string(), json!({"support": support, "why": why}))
                })
                .collect();
            json!({"feature": words, "backends": answers})
        })
        .collect();
    let backends: Vec<_> = BackendName::ALL
        .iter()
        .filter_map(|name| columns.iter().find(|(backend, _)| backend.name() == *name))
        .map(|(backend, job)| json!({"name": backend.name(), "about": backend.about(), "target": job.target.name}))
        .collect();
    let plugins: Vec<_> = plugins
        .iter()
        .map(|plugin| json!({"name": plugin.name, "kind": if plugin.is_program { "program" } else { "templates" }, "place": plugin.place}))
        .collect();
    jobc_compiler::emit::to_json(&json!({"backends": backends, "features": rows, "plugins": plugins}))
}
