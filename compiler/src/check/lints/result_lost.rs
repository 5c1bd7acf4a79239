//! J0383: results that are gone when the job has ended.

use camino::Utf8Path;
use jobc_schema::Pointer;
use jobc_schema::plan::{CODE, ImageSource, MountPlan};
use serde_json::json;

use super::read_only_write::OUTPUT_FLAGS;
use crate::check::command::Command;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Those flags whose files are needed only while the program runs.
const TRANSIENT: [&str; 3] = ["--cache-dir", "--log-dir", "--logdir"];

/// Programs whose files are input of what follows, or that read what these flags name.
const OTHERS: [&str; 9] =
    ["tensorboard", "curl", "wget", "tar", "unzip", "pip", "conda", "jupyter", "python3-config"];

/// Directories for what need not stay.
const TEMPORARY: [&str; 5] = ["/tmp", "/var/tmp", "/dev", "/proc", "/run"];

/// Words of a script that copies files to another place.
const UPLOADS: [&str; 13] = [
    "aws ",
    "s3",
    "gsutil",
    "gcloud",
    "azcopy",
    "rclone",
    "rsync",
    "scp",
    "huggingface-cli",
    "hf ",
    "push_to_hub",
    "mc ",
    "curl",
];

/// Warns where a program is told to write its results to a directory of the container, which goes with it.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        if UPLOADS.iter().any(|word| role.text.contains(word)) {
            continue;
        }
        let lost = role.commands.iter().filter_map(results).find(|(_, path)| is_lost(view, role, path));
        let Some((flag, path)) = lost else { continue };
        let name = &role.plan.name;
        let message = format!(
            "`{flag}` of role `{name}` is `{path}` in its container: the results are gone when it ends"
        );
        let found = Diagnostic::warning(codes::RESULT_LOST, message).at(&role.run_at(), "");
        sink.push(kept(view, role, found, path));
    }
}

/// The flag for the results of a command as it is written, and the path that it has.
fn results(command: &Command) -> Option<(&str, &str)> {
    if OTHERS.contains(&command.program()) {
        return None;
    }
    let flags: Vec<&str> = OUTPUT_FLAGS.into_iter().filter(|flag| !TRANSIENT.contains(flag)).collect();
    let (flag, path) = command.one_of(&flags)?;
    let is_path = !path.is_empty() && !path.starts_with(['-', '~']) && !path.contains(['$', '{', ':', '*']);
    let stays = !TEMPORARY.iter().any(|directory| Utf8Path::new(path).starts_with(directory));
    (is_path && stays).then_some((flag, path))
}

/// Whether a path is in no mount of the role, as far as that is certain.
fn is_lost(view: &View<'_>, role: &RoleView<'_>, path: &str) -> bool {
    // A script that names the path again may copy what is there.
    if role.text.matches(path).count() > 1 {
        return false;
    }
    let of_host = view.plan.target.settings.is_host();
    let keeps = |mount: &MountPlan| of_host || mount.volume != CODE;
    let in_mount =
        |path: &Utf8Path| role.plan.mounts.iter().any(|mount| keeps(mount) && path.starts_with(&mount.path));
    if path.starts_with('/') {
        return !in_mount(path.into());
    }
    let image = view.plan.image_of(role.plan);
    if image.is_none_or(|image| matches!(image.source, ImageSource::Host { cwd: true, .. }))
        || ["cd ", "pushd "].iter().any(|word| role.text.contains(word))
    {
        return false;
    }
    match &role.plan.workdir {
        Some(directory) => !in_mount(&Utf8Path::new(directory).join(path)),
        // The working directory of the image may be in a mount.
        None => role.plan.mounts.is_empty(),
    }
}

/// Offers an output for the results.
fn kept(view: &View<'_>, role: &RoleView<'_>, found: Diagnostic, path: &str) -> Diagnostic {
    let output = role.plan.mounts.iter().find(|mount| view.job.outputs.contains_key(&mount.volume));
    if let Some(mount) = output {
        let own = Utf8Path::new(path).file_name().unwrap_or("results");
        let better = format!("{}/{own}", mount.path.trim_end_matches('/'));
        return found.note(format!("write them below `{}`, which is an output", mount.path)).reword(
            &role.run_at(),
            path,
            &better,
        );
    }
    let found = found.note("declare a directory that stays, such as `outputs: {results: {source: ./results, mount: /output}}`, and write there");
    if !path.starts_with('/')
        || !view.plan.target.settings.is_host()
        || view.job.outputs.contains_key("results")
    {
        return found;
    }
    let at = Pointer::ROOT.keys(["outputs", "results"]);
    let path = Utf8Path::new(path);
    let directory = if path.extension().is_some() { path.parent().unwrap_or(path) } else { path };
    if directory.as_str() == "/" {
        return found;
    }
    found.set(&at, json!({"source": "./results", "mount": directory.as_str()}))
}
