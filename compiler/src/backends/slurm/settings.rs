//! Errors in the target's settings.

use jobc_schema::plan::JobPlan;
use jobc_schema::target::{SlurmContainer, SlurmTarget};
use jobc_schema::{BackendName, Pointer};

use crate::diagnostic::{Diagnostic, DocumentId, Location, Safety, Sink, codes};

use super::header;

/// The options that the backend writes itself, with the field that sets them.
const OWN: &[(&str, &str)] = &[
    ("account", "`account`"),
    ("array", "`matrix` of the job"),
    ("constraint", "`constraint`"),
    ("cpus-per-gpu", "`resources.cpu` of the job"),
    ("cpus-per-task", "`resources.cpu` of the job"),
    ("dependency", "`needs` of the job"),
    ("exclusive", "`exclusive`"),
    ("export", "`env` of the job"),
    ("gpus", "`resources.gpu` of the job"),
    ("gpus-per-node", "`resources.gpu` of the job"),
    ("gpus-per-socket", "`resources.gpu` of the job"),
    ("gpus-per-task", "`gpu: per-task` of the target"),
    ("gres", "`resources.gpu` of the job"),
    ("job-name", "`name` of the job"),
    ("kill-on-invalid-dep", "`needs` of the job"),
    ("licenses", "`licenses`"),
    ("mem", "`resources.memory` of the job"),
    ("mem-per-cpu", "`memory: per-cpu` of the target"),
    ("mem-per-gpu", "`memory: per-gpu` of the target"),
    ("nodes", "`instances` of the job"),
    ("no-requeue", "`retry` of the job"),
    ("ntasks", "`instances` of the job"),
    ("ntasks-per-node", "`instances` of the job"),
    ("open-mode", "`retry` of the job"),
    ("partition", "`partition`"),
    ("qos", "`qos`"),
    ("requeue", "`retry` of the job"),
    ("reservation", "`reservation`"),
    ("signal", "`grace_period` of the job"),
    ("switches", "`switches`"),
    ("time", "`timeout` of the job"),
    ("tmp", "`resources.disk` of the job"),
];

/// Options that affect how a script is run, where its output goes, or what `sbatch` prints.
const OF_JOBC: &[&str] = &[
    "chdir",
    "error",
    "export-file",
    "help",
    "input",
    "output",
    "parsable",
    "quiet",
    "test-only",
    "usage",
    "verbose",
    "version",
    "wait",
    "wrap",
];

fn error(message: String, key: &Pointer, why: String) -> Diagnostic {
    Diagnostic::error(codes::SLURM_SETTING, message).at_place(Location::target(key), "").note(why)
}

/// Reports that the backend is missing whose bundles the containers of a job are.
pub(super) fn check_bundles(job: &JobPlan, settings: &SlurmTarget, sink: &mut Sink) {
    let at = Pointer::ROOT.keys(["targets", &job.target.name, "slurm"]);
    let container = settings.container;
    let bundles = matches!(container, SlurmContainer::Jobc | SlurmContainer::Oci);
    if bundles && !job.target.settings.backends.contains(&BackendName::Oci) {
        let place = if job.target.settings.slurm.is_some() {
            at.clone()
        } else {
            Pointer::ROOT.keys(["targets", &job.target.name, "backends"])
        };
        let name = container.as_str();
        let mut backends = vec![BackendName::Oci.as_str()];
        backends.extend(job.target.settings.backends.iter().map(|backend| backend.as_str()));
        let written = backends.join(", ");
        let diagnostic = error(
            format!("`container: {name}` needs the bundles of the backend `oci`"),
            &place,
            format!("write `backends: [{written}]`, or `container: pyxis`, `apptainer` or `none`"),
        );
        // The script is the same; the bundles that it starts are added.
        let pointer = Pointer::ROOT.keys(["targets", &job.target.name, "backends"]);
        let list = Location::Entry { document: DocumentId::Targets, pointer };
        let message = format!("write `backends: [{written}]`");
        sink.push(diagnostic.fix(message, list, serde_json::json!(backends).to_string(), Safety::Safe));
    }
}

/// Reports settings that conflict with each other.
pub(super) fn check(job: &JobPlan, settings: &SlurmTarget, sink: &mut Sink) {
    let at = Pointer::ROOT.keys(["targets", &job.target.name, "slurm"]);
    let container = settings.container;
    if container == SlurmContainer::Oci
        && let Some(release) = settings.release.as_deref().filter(|release| *release < "23.02")
    {
        sink.push(error(
            format!("containers of Slurm {release} get no environment of their task"),
            &at.key("release"),
            "`container: oci` works from 23.02 on; write `container: jobc`".to_owned(),
        ));
    }
    if settings
        .directory
        .as_ref()
        .is_some_and(|directory| SlurmTarget::of_user(directory, "").contains(['%', '$']))
    {
        let message = "sbatch replaces what follows a `%` in the directory of its output".to_owned();
        let why = "choose a directory without `%` and `$`, but for `$USER` and `%u`".to_owned();
        sink.push(error(message, &at.key("directory"), why));
    }
    for (option, value) in &settings.extra {
        let place = at.keys(["extra", option]);
        if let Some((_, instead)) = OWN.iter().find(|(own, _)| own == option) {
            let message = format!("the option `{option}` is written from {instead}");
            sink.push(error(message, &place, format!("remove it, and set {instead}")));
        } else if OF_JOBC.contains(&option.as_str()) {
            let message = format!(
                "the option `{option}` cannot be set: jobc submits its scripts and reads their output by itself"
            );
            sink.push(error(message, &place, "remove it; `directory` says where output is kept".to_owned()));
        } else if value.text.contains(char::is_control) {
            let message =
                format!("the value of the option `{option}` has a line break or another control character");
            sink.push(error(message, &place, "an `#SBATCH` line cannot hold it".to_owned()));
        }
    }
    for name in header::passed_variables(job).into_iter().filter(|name| name.contains('*')) {
        let image = job.images.values().find(|image| matches!(&image.source, jobc_schema::plan::ImageSource::Host { env, .. } if env.iter().any(|other| other == name)));
        if let Some(image) = image {
            let message = format!("sbatch passes variables by name, and `{name}` is the beginning of names");
            sink.push(
                Diagnostic::error(codes::SLURM_SETTING, message)
                    .at_key(&image.declared_at.key("host"), "")
                    .note("name each variable"),
            );
        }
    }
}
