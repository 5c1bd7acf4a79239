//! Conda packages.

use jobc_schema::Pointer;
use jobc_schema::image::Conda;
use jobc_schema::plan::BuildStep;

use crate::diagnostic::{Diagnostic, codes};
use crate::emit::dockerfile::{Command, Kind, Mount};

use super::base::CondaTool;
use super::build::Build;
use super::requirements::DIRECTORY;
use jobc_schema::shell;

impl CondaTool {
    /// The program, and its arguments for the base environment.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Conda => "conda",
            Self::Micromamba => "micromamba",
        }
    }
}

/// Puts the programs of micromamba's environment on PATH, since its startup script does not run.
pub(super) fn put_on_path(build: &mut Build<'_>, steps: &[BuildStep]) {
    let used =
        |step: &BuildStep| matches!(step, BuildStep::Run(_) | BuildStep::Python(_) | BuildStep::Conda(_));
    if build.base.conda == Some(CondaTool::Micromamba) && steps.iter().any(used) {
        let pair = ("PATH".to_owned(), "/opt/conda/bin:$PATH".to_owned());
        build.push_default(Kind::Env(vec![pair]), "micromamba's environment is not active in a build");
    }
}

/// Installs conda packages into the base environment.
pub(super) fn install(build: &mut Build<'_>, wanted: &Conda, at: &Pointer) {
    let Some(tool) = build.base.conda else {
        build.sink.push(
            Diagnostic::error(
                codes::BUILD_NO_CONDA,
                format!("`conda` needs a base image with conda, and `{}` is not known to have it", build.from),
            )
            .at_key(at, "requested here")
            .at(&build.at.key("from"), "this base")
            .note("build on `condaforge/miniforge3`, `continuumio/miniconda3` or `mambaorg/micromamba`, or use `python` with pip"),
        );
        return;
    };
    let mut lines: Vec<String> = Vec::new();
    let program = tool.program();
    if let Some(file) = &wanted.file
        && let Some(copied) = copy_file(build, file, &at.key("file"))
    {
        let verb = if tool == CondaTool::Conda { "env update" } else { "install --yes" };
        lines.push(format!("{program} {verb} --name base --file {}", shell::quote(&copied)));
    }
    if !wanted.packages.is_empty() {
        let and = if lines.is_empty() { "" } else { "&& " };
        // Without the switch the channels of the base image's own settings are searched as well.
        lines.push(format!("{and}{program} install --yes --name base --override-channels"));
        let usual = ["conda-forge".to_owned()];
        let channels = if wanted.channels.is_empty() { &usual[..] } else { &wanted.channels };
        lines.extend(channels.iter().map(|name| format!("    --channel {}", shell::quote(name))));
        lines.extend(wanted.packages.iter().map(|package| format!("    {}", shell::quote(package))));
    }
    if !lines.is_empty() {
        build.push(Kind::Run { mounts: cache(build), command: Command::Lines(lines) }, at);
    }
}

/// Conda's package directory, kept between builds if root builds.
pub(super) fn cache(build: &Build<'_>) -> Vec<Mount> {
    if build.user.is_some() {
        return vec![];
    }
    vec![Mount::Cache { target: "/opt/conda/pkgs".into(), locked: true }]
}

fn copy_file(build: &mut Build<'_>, file: &str, at: &Pointer) -> Option<String> {
    if !build.one_line(file, at, "a path") || !build.take(file, at) {
        return None;
    }
    let to = format!("{DIRECTORY}/{}", super::copy::inside_context(file)?);
    let chown = build.user.clone();
    build.push(
        Kind::Copy { from: None, chown, chmod: None, sources: vec![file.to_owned()], to: to.clone() },
        at,
    );
    Some(to)
}
