//! Paths of a command that exist on this host, and not for the command, if it has its own /tmp.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use jobc_job::host_environment::Caller;

use crate::input::normalize;
use crate::runtime::args::run::RunArgs;
use crate::table::escape_control;

/// The directory that is empty in a container on the files of the host.
const HIDDEN: &str = "/tmp";

/// Whether containers on the files of this host have their own /tmp: those of unprivileged users, since it holds files of
/// other users, and all if it is a file system of its own.
pub(super) fn has_own_tmp() -> bool {
    let device = |path: &str| std::fs::metadata(path).map(|data| data.dev()).ok();
    !rustix::process::geteuid().is_root() || device(HIDDEN) != device("/")
}

/// The note about the first path of a command on the files of the host that exists below /tmp and is not mounted.
pub(super) fn note(args: &RunArgs, caller: &Caller, exists: impl Fn(&Path) -> bool) -> Option<String> {
    let container = &args.command.container;
    if container.image.as_deref().is_some_and(|image| image != "host") || !args.root.is_empty() {
        return None;
    }
    let directory = caller.directory.as_deref()?;
    let environments =
        caller.variables.iter().filter(|(name, _)| name == "VIRTUAL_ENV" || name == "CONDA_PREFIX");
    let volumes = container.volume.iter().map(|volume| Path::new(&volume.mount));
    let shown: Vec<&Path> =
        environments.map(|(_, value)| Path::new(value)).chain(volumes).chain([directory]).collect();
    let is_hidden = |path: &PathBuf| {
        path.starts_with(HIDDEN)
            && path != Path::new(HIDDEN)
            && !shown.iter().any(|shown| path.starts_with(shown))
            && exists(path)
    };
    let words = args.command.command.iter();
    // An option has its path after an equals sign.
    let words = words.map(|word| word.split_once('=').map_or(word.as_str(), |(_, value)| value));
    let directory = Utf8Path::from_path(directory)?;
    let path = words.map(|word| normalize(&directory.join(word)).into_std_path_buf()).find(is_hidden)?;
    let mount = if path.parent() == Some(Path::new(HIDDEN)) { path.as_path() } else { path.parent()? };
    let (path, mount) = (escape_control(&path.display().to_string()), mount.display());
    Some(format!(
        "jobc: note: the command does not see `{path}`: it has its own {HIDDEN}; to mount it, add `-v {mount}:{mount}:ro` before `--`\n"
    ))
}
