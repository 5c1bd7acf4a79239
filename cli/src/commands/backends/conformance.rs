//! `jobc backend test NAME`: tests whether a plug-in follows the contract, with jobs that request one feature each.

use jobc_compiler::backend::{Backend as _, Capability, Context, File, Losses, Support};
use jobc_compiler::diagnostic::{Severity, Sink};
use jobc_compiler::files::MemoryFiles;
use jobc_compiler::plugin::{PluginBackend, PluginError};
use jobc_compiler::source::Source;
use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;
use serde_json::json;

use super::{Selection, minimal_job, plans};
use crate::input::InputError;
use crate::outcome::Outcome;
use crate::plugins::InstalledPlugins;
use crate::terminal;

/// The name of the target that the jobs are for.
const TARGET: &str = "test";

/// Tests a plug-in, and prints a line for each failure and the numbers.
pub(crate) fn run(name: &str) -> Outcome {
    let plugin = match name.parse() {
        Ok(BackendName::Plugin(plugin)) => InstalledPlugins::here().open(plugin),
        Ok(_) => Err(format!("`{name}` is a backend of jobc, not a plug-in").into()),
        Err(error) => Err(error.to_string().into()),
    };
    let plugin = match plugin {
        Ok(Some(plugin)) => plugin,
        Ok(None) => {
            let why = format!(
                "unknown plug-in `{name}`: found neither the program `jobc-backend-{name}` on PATH nor the file `backends/{name}/backend.yaml`"
            );
            return crate::commands::report_input_error(&InputError(why));
        }
        Err(why) => {
            terminal::print(&format!("{name}: failed: {why}\n"));
            return Outcome::Errors;
        }
    };
    let manifest = plugin.manifest();
    terminal::print(&format!(
        "{name}: {}; {} features, {} in part\n",
        manifest.about,
        manifest.expresses.len(),
        manifest.lossy.len()
    ));
    let (mut passed, mut refused, mut failed) = (0, 0, 0);
    for (capability, words) in Capability::TABLE {
        let Some(job) = job(name, *capability) else { continue };
        match plugin.support(*capability, &job) {
            Support::None(_) => refused += 1,
            _ => match same_files(plugin, &job) {
                Ok(()) => passed += 1,
                Err(why) => {
                    failed += 1;
                    terminal::print(&format!("a job with `{words}`: failed: {why}\n"));
                }
            },
        }
    }
    terminal::print(&format!("{passed} jobs written, {refused} refused by the manifest, {failed} failed\n"));
    if failed == 0 && passed > 0 { Outcome::Success } else { Outcome::Errors }
}

/// The smallest job that requests a feature.
fn job(name: &str, capability: Capability) -> Option<JobPlan> {
    let targets = json!({"version": 1, "targets": {TARGET: {"backends": [name]}}}).to_string();
    let ask = Selection::Named(Some(Source::new("targets.json", targets)), TARGET.to_owned());
    plans(&minimal_job::job(capability), &ask).ok()?.into_iter().next()
}

/// Lowers a job twice: both times without an error, and with the same files.
fn same_files(plugin: &PluginBackend, job: &JobPlan) -> Result<(), PluginError> {
    let first = lower(plugin, job)?;
    if first.is_empty() {
        return Err("it writes no files".into());
    }
    if lower(plugin, job)? != first {
        return Err("it writes other files for the same job".into());
    }
    Ok(())
}

fn lower(plugin: &PluginBackend, job: &JobPlan) -> Result<Vec<File>, PluginError> {
    let files = MemoryFiles::default();
    let context = Context {
        files: &files,
        to_job: "../../..".into(),
        gpu_injection: None,
        losses: Losses::Allow,
        plugins: None,
        all_jobs: &[],
    };
    let mut sink = Sink::new();
    let written = plugin.lower(job, &context, &mut sink);
    let error = sink.diagnostics().iter().find(|found| found.severity == Severity::Error);
    error.map_or(Ok(written), |error| Err(error.message.as_str().into()))
}
