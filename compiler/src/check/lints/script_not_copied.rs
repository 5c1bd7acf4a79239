//! J0352: a script beside the job file that no part of the job brings to where its command looks for it.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::BackendName;
use jobc_schema::image::{Copy, HostImage};
use jobc_schema::plan::{ImagePlan, ImageSource, VolumeSource};
use serde_json::json;

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::stdlib::images;

/// Where the fix copies code to. Images of frameworks start there too.
const CODE: &str = "/workspace";

/// Warns of `python train.py` and `bash train.sh` with `image: host`, whose commands start in `/`, and with a known public
/// image, although the script is beside the job file.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| role.plan.workdir.is_none()) {
        let Some(written) = script(role) else { continue };
        let Some(image) =
            view.plan.images.get(&role.plan.image).filter(|image| starts_elsewhere(view, image))
        else {
            continue;
        };
        let script = Utf8Path::new(written.trim_start_matches("./"));
        let is_here = view.files.exists(script);
        let warning = |words: String| {
            let message = format!("`{written}` of role `{}` is not {words}", role.plan.name);
            Diagnostic::warning(codes::SCRIPT_NOT_COPIED, message).at(&role.run_at(), "")
        };
        let report = |reason: &str| warning(format!("in the container: {reason}"));
        let beside = |directory: &str| warning(format!("where commands start: it is in `{directory}`"));
        let of = |name: &str| {
            report(&format!("its image is {name}, without files of yours"))
                .note("copy your code into the image, or write `code: .`, which sends it with the job")
        };
        let found = if let Some(directory) = mounted(view, role, script) {
            beside(directory).set(&role.at().key("workdir"), directory)
        } else if let Some(directory) = copied(view, image, script) {
            let at = image.declared_at.key("workdir");
            beside(&directory).set(&at, directory)
        } else {
            match &image.source {
                ImageSource::Host { venv, env, .. } if role.plan.mounts.is_empty() || is_here => {
                    let here = HostImage { cwd: true, venv: *venv, env: env.clone() };
                    report("with `image: host`, commands start in `/`")
                        .note("`cwd: true` mounts the directory in which `jobc run` is started, and starts commands there")
                        .set(&image.declared_at, json!({"host": here}))
                }
                ImageSource::Reference {} if role.plan.mounts.is_empty() && is_here => {
                    let copy = json!({"from": image.reference, "copy": [{"from": ".", "to": CODE}], "workdir": CODE});
                    of(&format!("`{}`", image.reference)).set(&image.declared_at, copy)
                }
                ImageSource::Build { from, .. }
                    if role.plan.mounts.is_empty() && is_here && adds_nothing(view, image) =>
                {
                    of(&format!("`{from}` and packages"))
                        .set(&image.declared_at.key("copy"), json!([{"from": ".", "to": CODE}]))
                        .also(&image.declared_at.key("workdir"), CODE)
                }
                _ => continue,
            }
        };
        sink.push(found);
    }
}

/// Whether the commands of an image are known to start where none of the user's files are: in `/` of the host, or where a
/// public image has its own.
fn starts_elsewhere(view: &View<'_>, image: &ImagePlan) -> bool {
    match &image.source {
        ImageSource::Host { cwd, .. } => !cwd && view.has_backend(BackendName::Oci),
        ImageSource::Reference {} => images::facts(&image.reference).is_some(),
        ImageSource::Build { from, .. } => {
            let block = view.image_block(image);
            images::facts(from).is_some()
                && block.is_some_and(|block| block.steps.is_empty() && block.workdir.is_none())
        }
        ImageSource::File { .. } | ImageSource::Dockerfile { .. } => false,
    }
}

/// Whether the block of an image has packages only.
fn adds_nothing(view: &View<'_>, image: &ImagePlan) -> bool {
    view.image_block(image).is_some_and(|block| block.copy.is_empty() && block.run.is_empty())
}

/// The mount with the script, if it is of a directory beside the job file.
fn mounted<'a>(view: &View<'a>, role: &RoleView<'a>, script: &Utf8Path) -> Option<&'a str> {
    role.plan.mounts.iter().filter(|mount| mount.subpath.is_none() && is_elsewhere(&mount.path)).find_map(
        |mount| {
            let VolumeSource::Path { path } = &view.plan.volumes.get(&mount.volume)?.source else {
                return None;
            };
            let there: Utf8PathBuf =
                Utf8Path::new(path).join(script).components().filter(|part| part.as_str() != ".").collect();
            (!path.starts_with('/') && view.files.exists(&there)).then_some(mount.path.as_str())
        },
    )
}

/// The directory of an image to which its block copies the script.
fn copied(view: &View<'_>, image: &ImagePlan, script: &Utf8Path) -> Option<String> {
    let copies = &view.image_block(image)?.copy;
    let found =
        copies.iter().filter(|copy| copy.image.is_none()).find_map(|copy| directory_of_copy(copy, script))?;
    is_elsewhere(found).then(|| found.to_owned())
}

/// Where a script is found by its path after a copy of everything, or of the script alone.
fn directory_of_copy<'c>(copy: &'c Copy, script: &Utf8Path) -> Option<&'c str> {
    let (from, to) = (copy.from.trim_start_matches("./").trim_end_matches('/'), Utf8Path::new(&copy.to));
    let is_flat = script.components().count() == 1;
    let directory = match from {
        "." | "" => to,
        _ if from == script && is_flat && copy.to.ends_with('/') => to,
        _ if from == script && is_flat && to.file_name() == script.file_name() => to.parent()?,
        _ => return None,
    };
    Some(directory.as_str().trim_end_matches('/'))
}

/// Whether commands surely do not start in a directory.
fn is_elsewhere(directory: &str) -> bool {
    directory.starts_with('/') && directory.len() > 1 && directory != CODE
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
        .find_map(|command| command.script_file())
        .filter(|file| !file.starts_with(['/', '$', '~']))?;
    let is_placed = role
        .plan
        .files
        .iter()
        .any(|placed| placed.path.trim_start_matches('/') == file.trim_start_matches("./"));
    (role.text.matches(file).count() == 1 && !is_placed).then_some(file)
}
