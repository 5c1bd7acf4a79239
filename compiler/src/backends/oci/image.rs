//! Image settings that are known before the image exists, and those left to the image.

use jobc_schema::plan::{BuildStep, CommandPlan, ImagePlan, ImageSource, JobPlan, RolePlan};

use crate::backend::command;

/// The settings of an image from its build block.
#[derive(Debug, Default)]
pub(super) struct ImageSettings<'a> {
    /// The user that commands run as.
    pub(super) user: Option<&'a str>,
    /// The directory commands start in; absolute.
    pub(super) workdir: Option<&'a str>,
    /// The ENTRYPOINT; an image with its own inherits no CMD.
    pub(super) entrypoint: Option<&'a [String]>,
}

/// The facts in the build block of a role's image.
pub(super) fn known<'a>(job: &'a JobPlan, role: &RolePlan) -> ImageSettings<'a> {
    let Some(ImagePlan { source: ImageSource::Build { steps, workdir, user, entrypoint, .. }, .. }) =
        job.image_of(role)
    else {
        return ImageSettings::default();
    };
    let last = |pick: fn(&BuildStep) -> Option<&String>| steps.iter().rev().find_map(pick);
    let user =
        user.as_ref().or(last(|step| if let BuildStep::User(user) = step { Some(user) } else { None }));
    let workdir =
        last(|step| if let BuildStep::Workdir(at) = step { Some(at) } else { None }).or(workdir.as_ref());
    ImageSettings {
        user: user.map(String::as_str),
        workdir: workdir.map(String::as_str).filter(|at| at.starts_with('/')),
        entrypoint: entrypoint.as_deref(),
    }
}

/// The process settings that come from the image, as listed in the annotation `dev.jobc.from-image`.
///
/// `env`: variables that `process.env` does not have; `path`: the value of PATH, instead of the default there; `cwd`,
/// `user`: instead of the defaults; `entrypoint`: goes before `process.args`; `command`: replaces `process.args`.
pub(super) fn image_settings(job: &JobPlan, role: &RolePlan) -> Vec<&'static str> {
    let known = known(job, role);
    let mut left = vec!["env"];
    if !role.env.contains_key("PATH") {
        left.push("path");
    }
    if role.workdir.is_none() && known.workdir.is_none() {
        left.push("cwd");
    }
    if role.user.is_none() && known.user.is_none() {
        left.push("user");
    }
    if known.entrypoint.is_none() {
        if command::argv(job, role).is_none() {
            left.push("command");
        } else if command::keeps_entrypoint(role) && matches!(role.command, CommandPlan::Args(_)) {
            left.push("entrypoint");
        }
    }
    left
}

/// The image of a role, as the runtime of the bundle finds it: prefixed with the registry of the target if it is built.
pub(super) fn reference(job: &JobPlan, role: &RolePlan) -> Option<String> {
    let image = job.image_of(role)?;
    Some(match (&image.source, &job.target.settings.registry) {
        (ImageSource::Host { .. }, _) => "host".to_owned(),
        (source, Some(registry)) if source.is_built() => {
            format!("{}/{}", registry.trim_end_matches('/'), image.reference)
        }
        _ => image.reference.clone(),
    })
}
