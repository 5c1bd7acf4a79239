//! J0352: a script beside the job file that no part of the job brings into the container.

use camino::Utf8Path;
use jobc_schema::BackendName;
use jobc_schema::image::HostImage;
use jobc_schema::plan::ImageSource;
use serde_json::json;

use crate::check::command::Command;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::stdlib::images;

/// Warns of `python train.py` with `image: host`, whose commands start in `/`, and with a known public image to which
/// the job adds none of its own, although the script is beside the job file.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| role.plan.workdir.is_none() && role.plan.mounts.is_empty()) {
        let Some(script) = script(role) else { continue };
        let Some(image) = view.plan.images.get(&role.plan.image) else { continue };
        let report = |reason: &str| {
            let message =
                format!("`{script}` of role `{}` is not in the container: {reason}", role.plan.name);
            Diagnostic::warning(codes::SCRIPT_NOT_COPIED, message).at(&role.run_at(), "")
        };
        match &image.source {
            ImageSource::Host { cwd: false, venv, env } if view.has_backend(BackendName::Oci) => {
                let here = HostImage { cwd: true, venv: *venv, env: env.clone() };
                let found = report("with `image: host`, commands start in `/`")
                    .note("`cwd: true` mounts the directory in which `jobc run` is started, and starts commands there");
                sink.push(found.set(&image.declared_at, json!({"host": here})));
            }
            ImageSource::Build { from, .. } => {
                let adds = view.image_block(image).is_none_or(|block| {
                    !(block.copy.is_empty()
                        && block.run.is_empty()
                        && block.steps.is_empty()
                        && block.workdir.is_none())
                });
                if !adds && images::facts(from).is_some() && view.files.exists(Utf8Path::new(script)) {
                    let found =
                        report(&format!("its image is `{from}` and packages, without files of yours"));
                    sink.push(
                        found
                            .note("copy your code into the image")
                            .set(&image.declared_at.key("copy"), json!([{"from": ".", "to": "/workspace"}]))
                            .also(&image.declared_at.key("workdir"), "/workspace"),
                    );
                }
            }
            _ => {}
        }
    }
}

/// The script by a relative path that a role starts, and which nothing in its command could have made.
fn script<'a>(role: &'a RoleView<'_>) -> Option<&'a str> {
    const CHANGE: [&str; 8] = ["cd", "git", "curl", "wget", "tar", "unzip", "cp", "pushd"];
    if role.commands.iter().any(|command| CHANGE.contains(&command.program())) {
        return None;
    }
    let file = role
        .commands
        .iter()
        .find_map(Command::python_file)
        .filter(|file| !file.starts_with(['/', '$', '~']))?;
    let is_placed = role
        .plan
        .files
        .iter()
        .any(|placed| placed.path.trim_start_matches('/') == file.trim_start_matches("./"));
    (role.text.matches(file).count() == 1 && !is_placed).then_some(file)
}
