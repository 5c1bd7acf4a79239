//! J0380: Python in an image without it.

use jobc_schema::Pointer;
use jobc_schema::plan::{BuildStep, ImagePlan, ImageSource};
use jobc_schema::reference::{Parts, Reference};
use serde_json::json;

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Images without Python; apt can install it in these.
const WITH_APT: [&str; 5] = ["ubuntu", "debian", "nvidia/cuda", "nvidia/cudagl", "rocm/dev-ubuntu"];

/// Images without Python and without apt.
const WITHOUT_APT: [&str; 2] = ["alpine", "busybox"];

/// Python's programs, and the Debian package that brings each.
const PROGRAMS: [(&str, &str); 6] = [
    ("python", "python-is-python3"),
    ("python3", "python3"),
    ("pip", "python3-pip"),
    ("pip3", "python3-pip"),
    ("torchrun", ""),
    ("accelerate", ""),
];

/// Words of a command that may install Python or reach another one.
const INSTALLERS: [&str; 11] =
    ["apt", "apk", "conda", "mamba", "uv ", "pyenv", "PATH", "activate", "module ", "source ", "spack"];

/// Warns where a command starts Python by its name, and neither the image nor anything else has one.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(image) = view.plan.image_of(role.plan) else { continue };
        let Some((reference, at)) = view.base(image) else { continue };
        let Some(has_apt) = has_apt(reference) else { continue };
        let Some(packages) = packages(image) else { continue };
        if INSTALLERS.iter().any(|word| role.text.contains(word)) || role.plan.env.contains_key("PATH") {
            continue;
        }
        let missing = role.commands.iter().find_map(|command| {
            let word = command.words.first()?;
            let (program, package) = *PROGRAMS.iter().find(|(program, _)| program == word)?;
            (!brings(&packages, program, package)).then_some(program)
        });
        let Some(program) = missing else { continue };
        let message =
            format!("`{program}` is not in the image `{reference}`: the command ends with exit code 127");
        let found = Diagnostic::warning(codes::NO_PYTHON, message)
            .at(&at, "")
            .at(&role.run_at(), format!("`{program}` is started here"));
        sink.push(mended(view, role, image, found, (program, has_apt, packages.is_empty())));
    }
}

fn has_apt(reference: &str) -> Option<bool> {
    let parts = Parts::of(reference);
    let name = parts.name.parse::<Reference>().ok()?;
    let name = name.short_repository();
    if name.starts_with("nvidia/") && !parts.tag.is_some_and(|tag| tag.contains("ubuntu")) {
        return None;
    }
    let is_one =
        |images: &[&str]| images.iter().any(|image| name == *image || name.starts_with(&format!("{image}-")));
    if is_one(&WITH_APT) { Some(true) } else { is_one(&WITHOUT_APT).then_some(false) }
}

/// The packages of apt in the image; `None` where something may install Python in another way.
fn packages(image: &ImagePlan) -> Option<Vec<&str>> {
    let steps = match &image.source {
        ImageSource::Reference {} => return Some(vec![]),
        ImageSource::Build { steps, .. } => steps,
        ImageSource::Dockerfile { .. } | ImageSource::File { .. } | ImageSource::Host { .. } => return None,
    };
    let mut packages = vec![];
    for step in steps {
        match step {
            BuildStep::Apt(names) => packages.extend(names.iter().map(String::as_str)),
            BuildStep::Workdir(_) | BuildStep::User(_) => {}
            BuildStep::Copy(copy) if copy.image.is_none() => {}
            BuildStep::Env(env) if !env.contains_key("PATH") => {}
            _ => return None,
        }
    }
    Some(packages)
}

/// Whether one of the packages is that of the program, or needs Python itself.
fn brings(packages: &[&str], program: &str, package: &str) -> bool {
    packages.iter().any(|name| {
        let name = name.split('=').next().unwrap_or_default();
        name == package || program == "python3" && name.starts_with("python3")
    })
}

fn mended(
    view: &View<'_>,
    role: &RoleView<'_>,
    image: &ImagePlan,
    found: Diagnostic,
    (program, has_apt, bare): (&str, bool, bool),
) -> Diagnostic {
    if program == "python" && has_apt && !bare {
        // Debian's package has `python3` alone.
        return found.note("write `python3`, which the packages bring").reword(
            &role.run_at(),
            "python ",
            "python3 ",
        );
    }
    if !has_apt {
        return found.note("use an image with Python, such as `python:3.12-slim`");
    }
    let at: &Pointer = &image.declared_at;
    if view.image_block(image).is_some() {
        return found
            .note("write `python: {}` in the image, which installs Python, or list the packages there")
            .set(&at.key("python"), json!({}));
    }
    let block = json!({"from": image.reference, "python": {}});
    found
        .note("use an image with Python, such as `python:3.12-slim`, or have it installed, with the packages that it needs")
        .set(at, block)
}
