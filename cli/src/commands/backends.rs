//! `jobc backends`: what each backend can express, according to the backends.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::adjust::Adjustments;
use jobc_compiler::backend::{Backend, Capability, Support};
use jobc_compiler::backends::table;
use jobc_compiler::compile::{Request, plan};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::files::MemoryFiles;
use jobc_compiler::lock::Locking;
use jobc_compiler::source::{Source, Sources};
use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;
use serde_json::json;

use crate::args::{Args, FormatArg};
use crate::input::{InputError, find_targets, read};
use crate::outcome::Outcome;
use crate::{report, terminal};

/// A job with two roles that requests nothing special: support depends only on the target.
const JOB: &str = "version: 1\nname: example\nimage: busybox:1.36\nroles:\n  a: {run: [\"true\"], instances: 2}\n  b: {run: [\"true\"]}\n";

pub(crate) fn run(target: Option<&str>, args: &Args) -> Outcome {
    let jobs = match target {
        None => plans(None, &[]),
        Some(target) => {
            let here = crate::input::absolute(Utf8Path::new(".")).ok();
            match here.as_deref().and_then(find_targets) {
                None => plans(None, &[target.to_owned()]),
                Some(path) => match read(&path) {
                    Ok(text) => plans(Some(Source::new(path, text)), &[target.to_owned()]),
                    Err(InputError(why)) => return super::report_input_error(&InputError(why)),
                },
            }
        }
    };
    let jobs = match jobs {
        Ok(jobs) => jobs,
        Err((sources, sink)) => return report::findings(&sources, sink, args.format, true),
    };
    let columns: Vec<(&dyn Backend, &JobPlan)> = table()
        .iter()
        .filter_map(|backend| {
            let job = jobs.iter().find(|job| job.target.settings.backends.contains(&backend.name()))?;
            Some((*backend, job))
        })
        .collect();
    if args.format == FormatArg::Json {
        terminal::print(&as_json(&columns));
    } else {
        terminal::print(&as_text(&columns));
    }
    Outcome::Success
}

/// The plan of the example job for each target.
fn plans(targets: Option<Source>, only: &[String]) -> Result<Vec<JobPlan>, (Sources, Sink)> {
    let mut sources = Sources::new();
    let job = sources.add(Source::new("example.yaml", JOB));
    let targets = targets.map(|source| sources.add(source));
    let files = MemoryFiles::default();
    let to_job = |_: &str| Utf8PathBuf::from("../../..");
    let request = Request {
        job,
        targets,
        set: vec![],
        params: vec![],
        only_targets: only.to_vec(),
        run_here: false,
        gpus_here: None,
        environment: None,
        only_backends: vec![],
        allow_lossy: false,
        gpu_injection: None,
        locking: Locking::Ignored,
        adjustments: Adjustments::default(),
        files: &files,
        to_job: &to_job,
    };
    let mut sink = Sink::new();
    let planned = plan(&mut sources, &request, &mut sink);
    planned.map(|planned| planned.jobs).ok_or((sources, sink))
}

fn support_word(support: &Support) -> &'static str {
    match support {
        Support::Full => "yes",
        Support::Plan => "plan",
        Support::Lossy(_) => "lossy",
        Support::None(_) => "-",
    }
}

fn as_text(columns: &[(&dyn Backend, &JobPlan)]) -> String {
    let width = Capability::TABLE.iter().map(|(_, words)| words.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (backend, _) in columns {
        out += &format!("{:11} {}\n", backend.name().as_str(), backend.about());
    }
    out += &format!("\n{:width$}", "what a job may ask for");
    for (backend, _) in columns {
        out += &format!("  {:10}", backend.name().as_str());
    }
    out = format!("{}\n", out.trim_end());
    for (capability, words) in Capability::TABLE {
        let mut line = format!("{words:width$}");
        for (backend, job) in columns {
            line += &format!("  {:10}", support_word(&backend.support(*capability, job)));
        }
        out += line.trim_end();
        out.push('\n');
    }
    out + "\nyes: exactly; plan: by the runtime, from plan.json; lossy: only with --allow-lossy; -: refused\n\
           `jobc backends --format json` gives the reasons\n"
}

fn as_json(columns: &[(&dyn Backend, &JobPlan)]) -> String {
    let rows: Vec<_> = Capability::TABLE
        .iter()
        .map(|(capability, words)| {
            let answers: serde_json::Map<String, serde_json::Value> = columns
                .iter()
                .map(|(backend, job)| {
                    let support = backend.support(*capability, job);
                    let why = match &support {
                        Support::Lossy(why) | Support::None(why) => Some(why.clone()),
                        Support::Full | Support::Plan => None,
                    };
                    let support = if support_word(&support) == "-" { "no" } else { support_word(&support) };
                    (backend.name().to_string(), json!({"support": support, "why": why}))
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
    jobc_compiler::emit::to_json(&json!({"backends": backends, "features": rows}))
}
