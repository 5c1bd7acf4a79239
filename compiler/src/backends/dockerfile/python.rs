//! Python and what pip installs.
//!
//! A base image with Python keeps it. On a plain distribution, apt's `python3` is used if its version matches the
//! request; otherwise uv, installed by pip in a pinned version, installs a stand-alone build of exactly the requested
//! version. Pip always writes to a virtual environment there, because distributions forbid changes to their own Python
//! (PEP 668).

use jobc_schema::Pointer;
use jobc_schema::image::Python as Wanted;
use jobc_schema::plan::BuildStep;

use crate::diagnostic::{Diagnostic, codes};
use crate::emit::dockerfile::{Command, Kind, Mount};

use super::base::{Base, CondaTool, Python, System, Version};
use super::build::Build;
use super::conda;
use super::requirements;
use jobc_schema::shell;

/// The release of uv that fetches other Python versions; pinned, since each release pins the patch version of `3.11`.
const UV: &str = "uv==0.13.8";
/// The virtual environment, on PATH.
const VENV: &str = "/opt/venv";

/// Where Python comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The base image.
    Base,
    /// The base image, whose version the build checks.
    Checked(Version),
    /// The distribution's package.
    Apt,
    /// A stand-alone build.
    Uv(Version),
    /// Conda.
    Conda(CondaTool, Version),
}

/// Makes sure that Python is available, and installs packages.
pub(super) fn install(build: &mut Build<'_>, wanted: &Wanted, steps: &[BuildStep], at: &Pointer) {
    let requested = wanted.version.as_deref().and_then(Version::parse);
    let Some(source) = source(build, requested, at) else { return };
    match source {
        Source::Base => {}
        Source::Checked(version) => check(build, version, at),
        Source::Apt => apt(build, steps, at),
        Source::Uv(version) => uv(build, version, at),
        Source::Conda(tool, version) => {
            let line = format!("{} install --yes --name base python={version}", tool.program());
            let command = Command::Lines(vec![line]);
            build.push(Kind::Run { mounts: conda::cache(build), command }, &at.key("version"));
        }
    }
    pip(build, wanted, at);
}

fn source(build: &mut Build<'_>, requested: Option<Version>, at: &Pointer) -> Option<Source> {
    let Base { python, conda, system, .. } = build.base;
    match (python, requested) {
        (Python::Known(_) | Python::Some | Python::Unknown, None) => Some(Source::Base),
        (Python::Known(version), Some(requested)) if version.serves(requested) => Some(Source::Base),
        (Python::Known(version), Some(requested)) if version.may_serve(requested) => {
            Some(Source::Checked(requested))
        }
        (Python::Known(version), Some(requested)) => {
            build.sink.push(
                Diagnostic::error(
                    codes::BUILD_PYTHON_VERSION,
                    format!("the base image has Python {version}, but the job asks for {requested}"),
                )
                .at(&at.key("version"), "requested here")
                .at(&build.at.key("from"), format!("this base has Python {version}"))
                .note(format!("build on an image that has Python {requested}, such as `python:{requested}-slim`, or leave `version` out")),
            );
            None
        }
        // The packages of these base images, such as PyTorch, are installed in their own Python.
        (Python::Some, Some(requested)) => match conda {
            Some(tool) if !build.from.contains("pytorch") => Some(Source::Conda(tool, requested)),
            _ => Some(Source::Checked(requested)),
        },
        (Python::Unknown, Some(requested)) => Some(Source::Checked(requested)),
        (Python::Apt(_), None) => Some(Source::Apt),
        (Python::Apt(Some(version)), Some(requested)) if version.serves(requested) => Some(Source::Apt),
        (Python::Apt(_), Some(requested)) => Some(Source::Uv(requested)),
        (Python::None, _) => {
            let example = requested.map_or("3.11".to_owned(), |version| version.to_string());
            let note = match system {
                System::Alpine => format!("build on `python:{example}-alpine`, or on `python:{example}-slim`, which has more prebuilt wheels"),
                System::Rpm => "install Python with `steps: [{run: \"dnf install -y python3-pip\"}, …]`, or build on a Debian base".into(),
                _ => format!("build on `python:{example}-slim`"),
            };
            build.sink.push(
                Diagnostic::error(
                    codes::BUILD_NO_PYTHON,
                    format!("`{}` has no Python and no apt to install it", build.from),
                )
                .at_key(at, "requested here")
                .at(&build.at.key("from"), "this base")
                .note(note),
            );
            None
        }
    }
}

/// Fails the build if the base has another version: better than a program that breaks at run time.
fn check(build: &mut Build<'_>, requested: Version, at: &Pointer) {
    let (slice, form) = if requested.has_patch() { (3, "%d.%d.%d") } else { (2, "%d.%d") };
    let line = format!(
        "python3 -c 'import sys; v = \"{form}\" % sys.version_info[:{slice}]; \
         sys.exit(None if v == \"{requested}\" else \"the base image has Python \" + v + \", the job asks for {requested}\")'"
    );
    let command = Command::Lines(vec![line]);
    build.push(Kind::Run { mounts: vec![], command }, &at.key("version"));
}

/// Apt's `python3` with a virtual environment.
fn apt(build: &mut Build<'_>, steps: &[BuildStep], at: &Pointer) {
    // The job's Python only sees modules installed by apt if the virtual environment includes system packages.
    let modules = steps.iter().any(|step| {
        matches!(step, BuildStep::Apt(packages) if packages.iter().any(|package| {
            package.starts_with("python3-") && !["pip", "venv", "dev", "minimal"].iter().any(|tool| package[8..].starts_with(tool))
        }))
    });
    let shared = if modules { " --system-site-packages" } else { "" };
    let then = [format!("python3 -m venv{shared} {VENV}")];
    build.apt_install(&["python3", "python3-venv"], &then, true, at);
    on_path(build, at);
}

/// A stand-alone build of Python, fetched by uv.
fn uv(build: &mut Build<'_>, version: Version, at: &Pointer) {
    let then = [
        "python3 -m venv /tmp/uv".to_owned(),
        format!("/tmp/uv/bin/pip install --no-cache-dir {UV}"),
        format!("UV_PYTHON_INSTALL_DIR=/opt/python /tmp/uv/bin/uv python install --no-bin {version}"),
        format!(
            "UV_PYTHON_INSTALL_DIR=/opt/python /tmp/uv/bin/uv venv --no-cache --seed --managed-python --python {version} {VENV}"
        ),
        "rm -rf /tmp/uv".to_owned(),
    ];
    build.apt_install(&["ca-certificates", "python3", "python3-venv"], &then, true, &at.key("version"));
    on_path(build, at);
}

fn on_path(build: &mut Build<'_>, at: &Pointer) {
    let pair = ("PATH".to_owned(), format!("{VENV}/bin:$PATH"));
    build.push(Kind::Env(vec![pair]), at);
}

/// One `pip install`, so that all packages are resolved together.
fn pip(build: &mut Build<'_>, wanted: &Wanted, at: &Pointer) {
    let files = requirements::copy(build, wanted, at);
    if files.is_empty() && wanted.packages.is_empty() {
        return;
    }
    let mounts = if build.user.is_none() {
        vec![Mount::Cache { target: "/root/.cache/pip".into(), locked: false }]
    } else {
        vec![]
    };
    let no_cache = if mounts.is_empty() { " --no-cache-dir" } else { "" };
    let mut lines = vec![format!("python3 -m pip install{no_cache}")];
    let mut option = |name: &str, value: &str| lines.push(format!("    {name} {}", shell::quote(value)));
    if let Some(index) = &wanted.index {
        option("--index-url", index);
    }
    for index in &wanted.extra_index {
        option("--extra-index-url", index);
    }
    for file in &files {
        option("--requirement", file);
    }
    lines.extend(wanted.packages.iter().map(|package| format!("    {}", shell::quote(package))));
    let pinned =
        |package: &String| ["==", "<", ">", "~=", "!=", "@"].iter().any(|sign| package.contains(sign));
    let comments: &[&str] = if wanted.packages.iter().all(pinned) {
        &[]
    } else {
        &["The job leaves some versions to pip.", "hadolint ignore=DL3013"]
    };
    build.push_with(Kind::Run { mounts, command: Command::Lines(lines) }, comments, at);
}
