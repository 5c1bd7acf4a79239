//! An image block as instructions.

use jobc_schema::Pointer;
use jobc_schema::plan::{BuildStep, ImagePlan, ImageSource, JobPlan};

use crate::backend::{Context, From, Origin, PartOf};
use crate::diagnostic::Sink;
use crate::emit::dockerfile::{Command, Dockerfile, Kind, Mount};

use super::base::{Base, System};
use super::{command, conda, python, user};

/// What became of an image block.
pub(super) struct Built {
    pub(super) dockerfile: Dockerfile,
    pub(super) origins: Vec<Origin>,
    /// Paths of the context that the image needs.
    pub(super) copied: Vec<String>,
}

/// A Dockerfile in the making.
pub(super) struct Build<'a> {
    pub(super) file: Dockerfile,
    origins: Vec<Origin>,
    pub(super) copied: Vec<String>,
    pub(super) from: &'a str,
    pub(super) base: Base,
    /// Where the image block stands.
    pub(super) at: &'a Pointer,
    /// Who commands run as at this point; root where absent.
    pub(super) user: Option<String>,
    /// Whether an apt step came before, which has freed the cache of the image's cleaner.
    pub(super) apt_seen: bool,
    pub(super) context: &'a Context<'a>,
    pub(super) sink: &'a mut Sink,
}

/// Turns an image block into instructions, in the order of its steps.
pub(super) fn lower(
    job: &JobPlan,
    name: &str,
    image: &ImagePlan,
    context: &Context<'_>,
    sink: &mut Sink,
) -> Built {
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
    let mut folder: Option<&str> = None;
    for (step, at) in steps.iter().zip(&places) {
        if matches!(step, BuildStep::Copy(_) | BuildStep::Run(_)) && folder.is_none() && workdir.is_some() {
            folder = workdir.as_deref();
            build.workdir(workdir.as_deref(), &image.declared_at.key("workdir"));
        }
        match step {
            BuildStep::Env(env) => build.env(env, at),
            BuildStep::Apt(packages) => build.apt(packages, at),
            BuildStep::Conda(wanted) => conda::install(&mut build, wanted, at),
            BuildStep::Python(wanted) => python::install(&mut build, wanted, steps, at),
            BuildStep::Copy(copy) => build.copy(copy, owner.as_deref(), folder.is_some(), at),
            BuildStep::Run(script) => build.run(script, secrets, at),
            BuildStep::Workdir(path) => {
                folder = Some(path);
                build.workdir(Some(path), at);
            }
            BuildStep::User(name) => {
                user::create(&mut build, Some(name), None, at);
                build.become_user(Some(name.clone()), at);
            }
        }
    }
    if workdir.is_some() && folder != workdir.as_deref() {
        build.workdir(workdir.as_deref(), &image.declared_at.key("workdir"));
    }
    build.labels(job, name, labels);
    if let Some(user) = user {
        let at = build.at.key("user");
        build.become_user(Some(user.clone()), &at);
    }
    if let Some(argv) = entrypoint {
        let at = build.at.key("entrypoint");
        build.push(Kind::Entrypoint(argv.clone()), &at);
    }
    Built { dockerfile: build.file, origins: build.origins, copied: build.copied }
}

/// The shell of `run` steps: what a role's own `run` is run by, or ash where there is no bash.
fn shell_of(system: System) -> Option<&'static [&'static str]> {
    match system {
        System::Debian | System::Rpm | System::Unknown => Some(&["/bin/bash", "-euo", "pipefail", "-c"]),
        System::Alpine => Some(&["/bin/ash", "-euo", "pipefail", "-c"]),
        System::Bare => None,
    }
}

/// Where each step stands in the job file: under its own key where the steps are in the fixed order, else in `steps`.
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
    // Lists may give several steps, the other keys one.
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

impl Build<'_> {
    /// Adds an instruction that a place of the job file asks for.
    pub(super) fn push(&mut self, kind: Kind, at: &Pointer) {
        self.push_with(kind, &[], at);
    }

    /// The same below lines of comment.
    pub(super) fn push_with(&mut self, kind: Kind, comments: &[&str], at: &Pointer) {
        let mut comments: Vec<String> = comments.iter().map(|&comment| comment.to_owned()).collect();
        if self.repeats_run(&kind) {
            // One layer a step, so that a changed step does not repeat the ones before it.
            match comments.iter_mut().find(|comment| comment.starts_with("hadolint ignore=")) {
                Some(pragma) => pragma.push_str(",DL3059"),
                None => comments.push("hadolint ignore=DL3059".to_owned()),
            }
        }
        let number = self.file.push_with(kind, comments);
        self.note(number, From::Spec(at.clone()));
    }

    /// Whether hadolint would have a short `RUN` joined to the one before it.
    fn repeats_run(&self, kind: &Kind) -> bool {
        let last = self.file.instructions.last().map(|instruction| &instruction.kind);
        let (Kind::Run { mounts, command }, Some(Kind::Run { mounts: before, .. })) = (kind, last) else {
            return false;
        };
        let joined = |line: &&String| line.starts_with("&& ");
        let long = matches!(command, Command::Lines(lines) if lines.iter().filter(joined).count() > 1);
        mounts == before && !long
    }

    /// Adds an instruction that nobody asked for, with its reason.
    pub(super) fn push_default(&mut self, kind: Kind, reason: &'static str) {
        let number = self.file.push(kind);
        self.note(number, From::Default(reason));
    }

    fn note(&mut self, number: usize, from: From) {
        let part = PartOf::Line(u32::try_from(number).unwrap_or(u32::MAX));
        self.origins.push(Origin { part, from });
    }

    fn base_image(&mut self) {
        let at = self.at.key("from");
        let digest = self.from.contains('@');
        let name = self.from.rsplit('/').next().unwrap_or(self.from);
        let comments: &[&str] = match name.split_once(':') {
            _ if digest || self.from == "scratch" => &[],
            None => &["The job names no tag.", "hadolint ignore=DL3006"],
            Some((_, "latest")) => &["The job asks for `latest`.", "hadolint ignore=DL3007"],
            Some(_) => &[],
        };
        // The platform goes to the build command: a Dockerfile that fixes it cannot be built for another.
        let image = self.from.to_owned();
        self.push_with(Kind::From { platform: None, image, alias: None }, comments, &at);
    }

    fn run(&mut self, script: &str, secrets: &[String], at: &Pointer) {
        let mounts: Vec<Mount> = secrets.iter().map(|id| Mount::Secret { id: id.clone() }).collect();
        let command = Command::Script(script.to_owned());
        self.push(Kind::Run { mounts, command }, at);
    }

    fn workdir(&mut self, path: Option<&str>, at: &Pointer) {
        if let Some(path) = path
            && self.one_line(path, at, "a path")
        {
            let path = if path.starts_with(['/', '$']) { path.to_owned() } else { format!("/{path}") };
            self.push(Kind::Workdir(path), at);
        }
    }

    /// `USER`, where it is not that user already; absent: root.
    pub(super) fn become_user(&mut self, user: Option<String>, at: &Pointer) {
        if self.user == user {
            return;
        }
        let root = user.as_deref().is_none_or(|user| matches!(user.split(':').next(), Some("root" | "0")));
        let named = user.as_deref().is_some_and(|user| !user.starts_with(|c: char| c.is_ascii_digit()));
        let comments: &[&str] = match (root, named) {
            (true, true) => &["hadolint ignore=DL3002,DL3066"],
            (true, false) => &["hadolint ignore=DL3002"],
            (false, true) => &["hadolint ignore=DL3066"],
            (false, false) => &[],
        };
        self.push_with(Kind::User(user.clone().unwrap_or_else(|| "0".into())), comments, at);
        self.user = user;
    }
}
