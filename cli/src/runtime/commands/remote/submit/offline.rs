//! `jobc submit --dry-run` where no cluster can be asked, without a kubeconfig or Slurm: what would be created, checked by
//! the compiler alone.

use std::process::ExitCode;

use camino::Utf8Path;
use jobc_compiler::compile::{self, Planning, Request};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::source::Sources;
use jobc_remote::built::BuiltDirectory;
use jobc_remote::identity::Identity;
use jobc_remote::target::brings_images;
use serde_json::{Value, json};

use super::{images, layouts, only_backend};
use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::report;
use crate::runtime::commands::jobs::Result;
use crate::terminal;

/// Prints the objects or batch scripts of each job, whose relative paths begin at a directory; `why` is the reason why the
/// cluster was not asked.
pub(super) fn show(
    why: &str,
    (target, directory): (&str, &Utf8Path),
    sources: &Sources,
    mut planned: Planning,
    request: &Request<'_>,
    mut sink: Sink,
    format: FormatArg,
) -> Result<ExitCode> {
    images::announce(&planned.jobs);
    if planned.jobs.first().is_some_and(|job| brings_images(&job.target.settings)) {
        layouts::assume(&mut planned.jobs, directory.as_std_path());
    }
    let mut names = Vec::with_capacity(planned.jobs.len());
    for job in &mut planned.jobs {
        names.push(job.name.clone());
        job.name = Identity::of(job).run_name(0);
        only_backend(job);
    }
    let outputs = compile::build(sources, planned, request, &mut sink);
    let outcome = report::findings(sources, images::require_registry(sink), format, true);
    if outcome != Outcome::Success {
        return Ok(ExitCode::from(outcome as u8));
    }
    for (job, output) in names.iter().zip(&outputs) {
        let files = output.artifacts.iter().map(|file| (file.path.as_str(), file.mode, &file.bytes[..]));
        let built = BuiltDirectory::of_artifacts(files)?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let objects = built.manifests.iter().map(|manifest| {
            let object = &manifest.object;
            (text(object.get("kind")), text(object.pointer("/metadata/name")))
        });
        let scripts =
            built.scripts.iter().map(|script| ("script".to_owned(), format!("{}.sbatch", script.group)));
        let objects: Vec<(String, String)> = objects.chain(scripts).collect();
        if format == FormatArg::Json {
            let objects: Vec<Value> =
                objects.iter().map(|(kind, name)| json!({"kind": kind, "name": name})).collect();
            let line = json!({"target": target, "job": job, "name": output.job.name, "objects": objects});
            terminal::print(&format!("{line}\n"));
        } else {
            let objects: Vec<String> =
                objects.iter().map(|(kind, name)| format!("{kind} `{name}`")).collect();
            terminal::print(&format!("{job}: would create {} on `{target}`\n", objects.join(", ")));
        }
    }
    terminal::eprint(&format!("jobc: the cluster was not asked: {why}; nothing was created\n"));
    Ok(ExitCode::SUCCESS)
}
