//! J0385: a command that reads data from a path where none is mounted.

use camino::Utf8Path;
use jobc_schema::Pointer;
use jobc_schema::plan::{MountPlan, VolumeKind};

use crate::check::command::Command;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Flags whose value is the directory of a program's data.
const INPUT_FLAGS: [&str; 14] = [
    "--data",
    "--data-dir",
    "--data-path",
    "--data-root",
    "--dataset",
    "--dataset-dir",
    "--dataset-path",
    "--datadir",
    "--root",
    "--input",
    "--input-dir",
    "--train-data",
    "--train-dir",
    "--corpus",
];

/// Warns where the role mounts data that its command does not name, and the command names a directory without a mount.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some((flag, path)) = role.commands.iter().find_map(input) else { continue };
        if role.plan.mounts.iter().any(|mount| Utf8Path::new(path).starts_with(&mount.path)) {
            continue;
        }
        let Some(mount) = unnamed(view, role) else { continue };
        let message = format!(
            "`{flag}` of role `{}` is `{path}`, where no data is mounted; `{}` is at `{}`",
            role.plan.name, mount.volume, mount.path
        );
        sink.push(
            Diagnostic::warning(codes::DATA_PATH, message)
                .at(&role.run_at(), "")
                .at(&Pointer::ROOT.keys(["data", &mount.volume]), "no command names its directory")
                .note("the path and `mount` have to agree; data that is in the image needs no `data`")
                .reword(&role.run_at(), path, &mount.path),
        );
    }
}

/// The flag for the data of a command, and its absolute path.
fn input(command: &Command) -> Option<(&str, &str)> {
    let (flag, path) = command.one_of(&INPUT_FLAGS)?;
    let is_path = path.starts_with('/') && path.len() > 1 && !path.contains(['$', '{', '*', ':', ',']);
    is_path.then_some((flag, path))
}

/// The only data of a role, where neither its command nor its variables name the directory of it.
fn unnamed<'v>(view: &View<'_>, role: &'v RoleView<'_>) -> Option<&'v MountPlan> {
    let is_data = |mount: &&MountPlan| {
        view.plan.volumes.get(&mount.volume).is_some_and(|volume| volume.kind == VolumeKind::Data)
            && view.job.data.contains_key(&mount.volume)
    };
    let mut data = role.plan.mounts.iter().filter(is_data);
    let (only, None) = (data.next()?, data.next()) else { return None };
    // A path such as `/dataset` begins with that of the mount and is another one.
    let names = |text: &str| {
        text.match_indices(only.path.as_str()).any(|(at, own)| {
            !text[at + own.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || "_-.".contains(c))
        })
    };
    let in_env = role.plan.env.keys().filter_map(|name| role.constant(name)).any(names);
    (!names(&role.text) && !in_env).then_some(only)
}
