//! An image's settings for its process, and how a bundle that leaves them open gets them.
//!
//! The annotation `dev.jobc.from-image` lists what a bundle leaves to its image (docs/reference/oci.md). Where the
//! image's settings come from does not matter here: from an image's configuration, or the config.json that `umoci
//! unpack` writes next to a root.

use std::path::PathBuf;

use oci_spec::runtime::Process;

use super::{NamedUser, named_user};
use jobc_container::bundle::Bundle;
use jobc_image::config::Execution;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::needs_user_namespace;

/// The annotation that lists the settings left to the image.
const FROM_IMAGE_ANNOTATION: &str = "dev.jobc.from-image";

/// The annotation with the STOPSIGNAL of the image that a bundle was unpacked from (image-spec, conversion.md).
const STOP_SIGNAL_ANNOTATION: &str = "org.opencontainers.image.stopSignal";

/// The settings of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Its variables, `NAME=value`.
    pub env: Vec<String>,
    /// The directory that commands start in.
    pub cwd: Option<PathBuf>,
    /// The user of commands.
    pub user: Option<ImageUser>,
    /// Its ENTRYPOINT, if known separately from CMD.
    pub entrypoint: Option<Vec<String>>,
    /// Its whole command: ENTRYPOINT and CMD.
    pub command: Vec<String>,
    /// Its STOPSIGNAL.
    pub stop_signal: Option<String>,
}

/// The user that an image names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageUser {
    /// As in its configuration: `USER[:GROUP]`.
    Name(String),
    /// Looked up when the image was unpacked: user, group, additional groups.
    Ids(u32, u32, Vec<u32>),
}

impl Image {
    /// The settings in a bundle that was unpacked from an image.
    pub fn of_bundle(bundle: &Bundle) -> Self {
        let Some(process) = bundle.config.spec.process() else { return Self::default() };
        let user = process.user();
        Self {
            env: process.env().clone().unwrap_or_default(),
            cwd: Some(process.cwd().clone()),
            user: Some(ImageUser::Ids(
                user.uid(),
                user.gid(),
                user.additional_gids().clone().unwrap_or_default(),
            )),
            entrypoint: None,
            command: process.args().clone().unwrap_or_default(),
            stop_signal: bundle.annotation(STOP_SIGNAL_ANNOTATION).map(str::to_owned),
        }
    }

    /// The settings in an image's configuration.
    pub fn of(config: &Execution) -> Self {
        Self {
            env: config.env.clone(),
            cwd: (!config.working_dir.is_empty()).then(|| PathBuf::from(&config.working_dir)),
            user: Some(ImageUser::Name(config.user.clone())),
            entrypoint: Some(config.entrypoint.clone()),
            command: [&config.entrypoint[..], &config.cmd].concat(),
            stop_signal: config.stop_signal.clone(),
        }
    }

    /// Adds the settings to a process that leaves them open, except the user, see [`user`].
    ///
    /// `taken` returns whether the process gets a variable in another way.
    pub(crate) fn apply(&self, bundle: &Bundle, process: &mut Process, taken: impl Fn(&str) -> bool) {
        for word in settings_from_image(bundle) {
            match word {
                "env" => self.add_variables(process, &taken),
                "path" => self.replace_path(process),
                "cwd" => {
                    if let Some(cwd) = &self.cwd {
                        process.set_cwd(cwd.clone());
                    }
                }
                "entrypoint" => {
                    let own = process.args().clone().unwrap_or_default();
                    let entrypoint = self.entrypoint.clone().unwrap_or_default();
                    process.set_args(Some([entrypoint, own].concat()));
                }
                "command" => {
                    process.set_args(Some(self.command.clone()));
                }
                _ => {}
            }
        }
    }

    fn add_variables(&self, process: &mut Process, taken: &impl Fn(&str) -> bool) {
        let mut env = process.env().clone().unwrap_or_default();
        for variable in &self.env {
            let name = variable_name(variable);
            if !taken(name) && !env.iter().any(|there| self::variable_name(there) == name) {
                env.push(variable.clone());
            }
        }
        process.set_env(Some(env));
    }

    fn replace_path(&self, process: &mut Process) {
        let Some(path) = self.env.iter().find(|variable| variable_name(variable) == "PATH") else { return };
        let mut env = process.env().clone().unwrap_or_default();
        match env.iter_mut().find(|variable| variable_name(variable) == "PATH") {
            Some(there) => there.clone_from(path),
            None => env.push(path.clone()),
        }
        process.set_env(Some(env));
    }
}

fn variable_name(variable: &str) -> &str {
    variable.split('=').next().unwrap_or_default()
}

/// The settings that the bundle leaves to the image.
fn settings_from_image(bundle: &Bundle) -> impl Iterator<Item = &str> {
    bundle.annotation(FROM_IMAGE_ANNOTATION).unwrap_or_default().split(',')
}

/// The user of the process, if the image sets it.
pub(crate) fn user(bundle: &Bundle, image: Option<&Image>, root: &[PathBuf]) -> Result<Option<NamedUser>> {
    let Some(image) = image.filter(|_| settings_from_image(bundle).any(|word| word == "user")) else {
        return Ok(None);
    };
    Ok(match &image.user {
        Some(ImageUser::Name(name)) if !name.is_empty() => Some(named_user(root, name)?),
        // Without privileges it has the caller's groups, which a process with groups of its own cannot have as well.
        None | Some(ImageUser::Name(_)) if needs_user_namespace() => None,
        None | Some(ImageUser::Name(_)) => root_of(root),
        Some(ImageUser::Ids(uid, gid, further)) => Some(NamedUser {
            name: format!("{uid}:{gid}"),
            uid: *uid,
            gid: *gid,
            additional_gids: further.clone(),
        }),
    })
}

/// Root, if /etc/group names it as a member of further groups, which it has then as in Docker.
fn root_of(root: &[PathBuf]) -> Option<NamedUser> {
    named_user(root, "0").ok().filter(|user| user.additional_gids.iter().any(|gid| *gid != user.gid))
}

/// Rejects a role without a command if the image's settings are unknown.
pub(crate) fn refuse_unknown(
    bundle: &Bundle,
    image: Option<&Image>,
    role: &str,
    choice: Option<&str>,
) -> Result<()> {
    let what = settings_from_image(bundle).find_map(|word| match (word, image) {
        ("command", None) => Some("command"),
        ("command", Some(image)) if image.command.is_empty() => Some("command"),
        ("entrypoint", None) => Some("ENTRYPOINT"),
        ("entrypoint", Some(image)) if image.entrypoint.is_none() => Some("ENTRYPOINT"),
        _ => None,
    });
    let Some(what) = what else { return Ok(()) };
    let root =
        choice.map_or_else(String::new, |choice| format!(", which the root `{choice}` does not define"));
    let error = Error::new(Kind::Config, format!("`{role}` runs the {what} of its image{root}"));
    Err(error.help(if what == "command" {
        format!("set the command in `roles.{role}.run`, or use a bundle from `umoci unpack` as the root")
    } else {
        format!("set the whole command in `roles.{role}.run`")
    }))
}

#[cfg(test)]
mod tests;
