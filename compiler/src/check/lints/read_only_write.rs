//! J0318: a command that writes to data which is mounted read-only.

use jobc_schema::plan::VolumeKind;

use crate::check::command::Command;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Flags whose value a program writes to.
pub(super) const OUTPUT_FLAGS: [&str; 16] = [
    "--output",
    "--output-dir",
    "--output-path",
    "--output-file",
    "--out",
    "--out-dir",
    "--outdir",
    "--save",
    "--save-dir",
    "--save-path",
    "--log-dir",
    "--logdir",
    "--results-dir",
    "--cache-dir",
    "--work-dir",
    "--default-root-dir",
];

/// Programs that write to each of their arguments.
const WRITE_ALL: [&str; 8] = ["mkdir", "touch", "rm", "rmdir", "tee", "truncate", "chmod", "chown"];

/// Programs that read what others write where these flags say.
const READERS: [&str; 1] = ["tensorboard"];

/// Programs that write to the last of their arguments.
const WRITE_LAST: [&str; 6] = ["cp", "mv", "rsync", "install", "ln", "scp"];

/// Variables with the directory to which a program downloads.
const CACHES: [&str; 6] =
    ["HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE", "TORCH_HOME", "XDG_CACHE_HOME"];

/// Variables that keep Hugging Face's programs from downloads.
const OFFLINE: [&str; 2] = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"];

/// Warns where a path of the command, or a cache, is below data without `writable: true`.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| !role.plan.mounts.is_empty()) {
        let offline = OFFLINE.iter().any(|name| role.plan.env.contains_key(*name));
        let mut caches = CACHES.into_iter().filter(|_| !offline);
        let cache = caches.find_map(|name| Some((name, volume(view, role, role.constant(name)?)?)));
        if let Some((name, volume)) = cache {
            let message =
                format!("`{name}` of role `{}` is in `{volume}`, which is read-only", role.plan.name);
            let at = jobc_schema::Pointer::ROOT.keys(["data", volume]);
            sink.push(
                Diagnostic::warning(codes::READ_ONLY_WRITE, message)
                    .at(&role.env_at(name), "")
                    .at(&at, "read-only without `writable: true`")
                    .note("a download fails there; where all is there already, set `HF_HUB_OFFLINE: \"1\"`")
                    .set(&at.key("writable"), true),
            );
        }
        let Some((command, path, volume)) = role.commands.iter().find_map(|command| {
            let mut paths = targets(command).into_iter();
            paths.find_map(|path| Some((command, path, volume(view, role, path)?)))
        }) else {
            continue;
        };
        let message = format!(
            "`{}` of role `{}` writes to `{path}`, but `{volume}` is read-only",
            command.program(),
            role.plan.name
        );
        sink.push(
            Diagnostic::warning(codes::READ_ONLY_WRITE, message)
                .at(&role.run_at(), "")
                .at(&jobc_schema::Pointer::ROOT.keys(["data", volume]), "read-only without `writable: true`")
                .note("write to one of `outputs`, or write `writable: true` here")
                .set(&jobc_schema::Pointer::ROOT.keys(["data", volume, "writable"]), true),
        );
    }
}

/// The read-only data that a path is in; a mount below it may be writable.
fn volume<'v>(view: &View<'v>, role: &RoleView<'v>, path: &str) -> Option<&'v str> {
    let inside = |mount: &str| {
        path.strip_prefix(mount.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mount =
        role.plan.mounts.iter().filter(|mount| inside(&mount.path)).max_by_key(|mount| mount.path.len())?;
    let kind = view.plan.volumes.get(&mount.volume)?.kind;
    (!mount.writable && kind == VolumeKind::Data).then_some(&mount.volume)
}

/// The paths that a command writes to, if its words tell.
fn targets(command: &Command) -> Vec<&str> {
    let words = command.arguments();
    let mut found: Vec<&str> =
        words.iter().enumerate().filter_map(|(i, word)| redirect_target(word, words.get(i + 1))).collect();
    let plain = || words.iter().map(String::as_str).filter(|word| word.starts_with('/'));
    let program = command.program();
    if WRITE_ALL.contains(&program) {
        // `mkdir -p /data` changes nothing where /data is a mount.
        let is_parent =
            |path: &&str| program == "mkdir" && command.has("-p") && path.matches('/').count() < 2;
        found.extend(plain().filter(|path| !is_parent(path)));
    } else if WRITE_LAST.contains(&program) {
        found.extend(words.last().map(String::as_str).filter(|word| word.starts_with('/')));
    } else if program == "dd" {
        found.extend(words.iter().filter_map(|word| word.strip_prefix("of=")));
    } else if program == "tar" && words.first().is_some_and(|mode| mode.contains('x')) {
        found.extend(command.one_of(&["-C", "--directory"]).map(|(_, path)| path));
    } else {
        let flags: &[&str] = match program {
            "wget" => &["-P", "-O", "--directory-prefix", "--output-document"],
            "curl" => &["-o", "--output", "--output-dir"],
            "unzip" => &["-d"],
            _ if READERS.contains(&program) => &[],
            _ => &OUTPUT_FLAGS,
        };
        found.extend(flags.iter().filter_map(|flag| command.flag(flag)));
    }
    found.retain(|path| path.starts_with('/'));
    found
}

/// The file that `> FILE`, `>>FILE` or `2>FILE` names.
fn redirect_target<'w>(word: &'w str, next: Option<&'w String>) -> Option<&'w str> {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&').strip_prefix('>')?;
    let file = rest.trim_start_matches(['>', '|']);
    if file.is_empty() { next.map(String::as_str) } else { Some(file) }
}
