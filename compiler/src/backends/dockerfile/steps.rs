//! An image block as instructions.

use jobc_schema::Pointer;
use jobc_schema::plan::{BuildStep, ImagePlan, ImageSource, JobPlan};

use crate::backend::{Context, Origin};
use crate::diagnostic::Sink;
use crate::emit::dockerfile::{Dockerfile, Kind};

use super::base::{Base, System};
use super::build::Build;
use super::{command, conda, python, user};

/// The result of compiling an image block.
pub(super) struct LoweredImage {
    pub(super) dockerfile: Dockerfile,
    pub(super) origins: Vec<Origin>,
    /// Paths of the context that the image needs.
    pub(super) copied: Vec<String>,
}

/// Turns an image block into instructions, in the order of its steps.
pub(super) fn lower(
    job: &JobPlan,
    name: &str,
    image: &ImagePlan,
    context: &Context<'_>,
    sink: &mut Sink,
) -> LoweredImage {
    let ImageSource::Build { from, args, steps, workdir, user, entrypoint, labels, secrets, .. } =
        &image.source
    else {
        unreachable!("only image blocks are lowered here")
    };
    let base = Base::of(from);
    let mut build = Build {
        file: Dockerfile { head: command::head(job, name, image, context), ..Dockerfile::default() },
        origins: vec![],
        copied: vec![],
        from,
        base,
        at: &image.declared_at,
        user: base.user.map(str::to_owned),
        apt_seen: false,
        context,
        sink,
    };
    build.base_image();
    for (name, value) in args {
        let at = build.at.keys(["args", name]);
        if build.one_line(value, &at, "a build argument") {
            build.push(Kind::Arg { name: name.clone(), default: Some(value.clone()) }, &at);
        }
    }
    let runs = steps.iter().any(|step| matches!(step, BuildStep::Run(_)));
    if runs && let Some(argv) = shell_of(base.system) {
        let argv = argv.iter().map(|&s| s.to_owned()).collect();
        build.push_default(Kind::Shell(argv), "a step fails when one of its commands does");
    }
    conda::put_on_path(&mut build, steps);
    user::create(&mut build, user.as_deref(), workdir.as_deref(), &image.declared_at.key("user"));
    let places = places(steps, build.at);
    let owner = user.clone().or_else(|| build.user.clone());
    let mut directory: Option<&str> = None;
    for (step, at) in steps.iter().zip(&places) {
        if matches!(step, BuildStep::Copy(_) | BuildStep::Run(_)) && directory.is_none() && workdir.is_some()
        {
            directory = workdir.as_deref();
            build.workdir(workdir.as_deref(), &image.declared_at.key("workdir"));
        }
        match step {
            BuildStep::Env(env) => build.env(env, at),
            BuildStep::Apt(packages) => build.apt(packages, at),
            BuildStep::Conda(wanted) => conda::install(&mut build, wanted, at),
            BuildStep::Python(wanted) => python::install(&mut build, wanted, steps, at),
            BuildStep::Copy(copy) => build.copy(copy, owner.as_deref(), directory.is_some(), at),
            BuildStep::Run(script) => build.run(script, secrets, at),
            BuildStep::Workdir(path) => {
                directory = Some(path);
                build.workdir(Some(path), at);
            }
            BuildStep::User(name) => {
                user::create(&mut build, Some(name), None, at);
                build.become_user(Some(name.clone()), at);
            }
        }
    }
    if workdir.is_some() && directory != workdir.as_deref() {
        build.workdir(workdir.as_deref(), &image.declared_at.key("workdir"));
    }
    build.labels(job, name, labels);
    if let Some(user) = user {
        let at = build.at.key("user");
        build.become_user(Some(user.clone()), &at);
    }
    if let Some((signal, at)) = stop_signal(job, name) {
        build.push(Kind::Stopsignal(signal), &at);
    }
    if let Some(argv) = entrypoint {
        let at = build.at.key("entrypoint");
        build.push(Kind::Entrypoint(argv.clone()), &at);
    }
    LoweredImage { dockerfile: build.file, origins: build.origins, copied: build.copied }
}

/// The signal that stops every role with the image, if they agree; and where the first of them names it.
fn stop_signal(job: &JobPlan, image: &str) -> Option<(String, Pointer)> {
    let mut roles = job.roles.iter().filter(|role| role.image == image);
    let first = roles.next()?;
    let signal = first.stop_signal.clone()?;
    let agree = roles.all(|role| role.stop_signal.as_ref() == Some(&signal));
    agree.then(|| (signal, first.at().key("stop_signal")))
}

/// The shell of `run` steps: that of a role's `run`, or ash in images without bash.
fn shell_of(system: System) -> Option<&'static [&'static str]> {
    match system {
        System::Debian | System::Rpm | System::Unknown => Some(&["/bin/bash", "-euo", "pipefail", "-c"]),
        System::Alpine => Some(&["/bin/ash", "-euo", "pipefail", "-c"]),
        System::Bare => None,
    }
}

/// The place of each step in the job file: under its own key if the steps are in the fixed order, else in `steps`.
fn places(steps: &[BuildStep], at: &Pointer) -> Vec<Pointer> {
    let rank = |step: &BuildStep| match step {
        BuildStep::Env(_) => Some((0, "env")),
        BuildStep::Apt(_) => Some((1, "apt")),
        BuildStep::Conda(_) => Some((2, "conda")),
        BuildStep::Python(_) => Some((3, "python")),
        BuildStep::Copy(_) => Some((4, "copy")),
        BuildStep::Run(_) => Some((5, "run")),
        BuildStep::Workdir(_) | BuildStep::User(_) => None,
    };
    let ranks: Option<Vec<_>> = steps.iter().map(rank).collect();
    // Lists may result in several steps, the other keys in one.
    let fixed = ranks.filter(|r| r.windows(2).all(|w| w[0].0 < w[1].0 || (w[0].0 == w[1].0 && w[0].0 >= 4)));
    let Some(ranks) = fixed else {
        return (0..steps.len()).map(|i| at.key("steps").index(i)).collect();
    };
    let (mut copies, mut runs) = (0, 0);
    let next = |counter: &mut usize| {
        *counter += 1;
        *counter - 1
    };
    ranks
        .into_iter()
        .map(|(rank, key)| match rank {
            4 => at.key(key).index(next(&mut copies)),
            5 => at.key(key).index(next(&mut runs)),
            _ => at.key(key),
        })
        .collect()
}
