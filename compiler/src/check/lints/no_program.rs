//! J0380: a program that the image of a role does not have.

use jobc_schema::Pointer;
use jobc_schema::plan::{BuildStep, ImagePlan, ImageSource};
use jobc_schema::reference::{Parts, Reference};
use serde_json::json;

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// What an image is made of, as far as it tells which programs are absent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// Debian or Ubuntu without further packages.
    Debian,
    /// The same with Python.
    SlimPython,
    /// The same with CUDA's compiler, which needs that of C.
    CudaDevel,
    /// Busybox, without apt.
    Busybox,
}

/// Images of each base: those whose name is this, or begins with it and a dash.
const IMAGES: [(&str, Base); 8] = [
    ("ubuntu", Base::Debian),
    ("debian", Base::Debian),
    ("nvidia/cuda", Base::Debian),
    ("nvidia/cudagl", Base::Debian),
    ("rocm/dev-ubuntu", Base::CudaDevel),
    ("python", Base::SlimPython),
    ("alpine", Base::Busybox),
    ("busybox", Base::Busybox),
];

/// Python's programs, and the Debian package that brings each.
const PYTHON: [(&str, &str); 6] = [
    ("python", "python-is-python3"),
    ("python3", "python3"),
    ("pip", "python3-pip"),
    ("pip3", "python3-pip"),
    ("torchrun", ""),
    ("accelerate", ""),
];

/// Other programs, and the packages of Debian that bring each; the first is the one to install.
const OTHERS: [(&str, &[&str]); 6] = [
    ("git", &["git", "git-lfs"]),
    ("curl", &["curl"]),
    ("wget", &["wget"]),
    ("make", &["make", "build-essential"]),
    ("gcc", &["gcc", "build-essential", "g++"]),
    ("g++", &["g++", "build-essential"]),
];

/// Words of a command that may install programs or reach other ones.
const INSTALLERS: [&str; 11] =
    ["apt", "apk", "conda", "mamba", "uv ", "pyenv", "PATH", "activate", "module ", "source ", "spack"];

/// Words of a script that asks whether a program is there.
const QUESTIONS: [&str; 4] = ["command -v", "which ", "type ", "hash "];

/// Warns where a command starts a program by its name, and neither the image nor anything else has one.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(image) = view.plan.image_of(role.plan) else { continue };
        let Some((reference, at)) = view.base(image) else { continue };
        let Some(base) = base(reference) else { continue };
        let Some(packages) = packages(image) else { continue };
        let mentions = |words: &[&str]| words.iter().any(|word| role.text.contains(word));
        if mentions(&INSTALLERS) || mentions(&QUESTIONS) || role.plan.env.contains_key("PATH") {
            continue;
        }
        let missing = role.commands.iter().find_map(|command| {
            let word = command.words.first()?;
            lacks(base, word, &packages).then_some(word.as_str())
        });
        let Some(program) = missing else { continue };
        let message =
            format!("`{program}` is not in the image `{reference}`: the command ends with exit code 127");
        let in_setup =
            role.spec.and_then(|spec| spec.setup.as_ref()).is_some_and(|text| text.contains(program));
        let command_at = if in_setup { role.at().key("setup") } else { role.run_at() };
        let found = Diagnostic::warning(codes::NO_PROGRAM, message)
            .at(&at, "")
            .at(&command_at, format!("`{program}` is started here"));
        let is_python = PYTHON.iter().any(|(name, _)| *name == program);
        sink.push(if is_python {
            with_python(view, role, image, found, (program, base, !packages.is_empty()))
        } else {
            with_package(view, image, found, (program, base))
        });
    }
}

/// Whether an image is known to have no Python, and nothing brings one.
pub(super) fn is_without_python(image: &ImagePlan, reference: &str) -> bool {
    base(reference).zip(packages(image)).is_some_and(|(base, packages)| lacks(base, "python3", &packages))
}

/// The base of an image of those that are known, by its name and tag.
fn base(reference: &str) -> Option<Base> {
    let parts = Parts::of(reference);
    let name = parts.name.parse::<Reference>().ok()?;
    let name = name.short_repository();
    let of_tag = |part: &str| parts.tag.is_some_and(|tag| tag.contains(part));
    if name.starts_with("nvidia/") && !of_tag("ubuntu") || name == "python" && !of_tag("-slim") {
        return None;
    }
    let is_named =
        |image: &str| name.strip_prefix(image).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let base = IMAGES.iter().find(|(image, _)| is_named(image))?.1;
    Some(if base == Base::Debian && of_tag("devel") { Base::CudaDevel } else { base })
}

/// Whether an image of that base with these packages lacks a program.
fn lacks(base: Base, program: &str, packages: &[&str]) -> bool {
    let names = || packages.iter().map(|name| name.split('=').next().unwrap_or_default());
    if let Some((_, package)) = PYTHON.iter().find(|(name, _)| *name == program) {
        // A package may need Python itself.
        let brings = |name: &str| name == *package || program == "python3" && name.starts_with("python3");
        return base != Base::SlimPython && !names().any(brings);
    }
    let Some((_, bring)) = OTHERS.iter().find(|(name, _)| *name == program) else { return false };
    let has = match base {
        Base::Busybox => program == "wget",
        Base::CudaDevel => ["make", "gcc", "g++"].contains(&program),
        Base::Debian | Base::SlimPython => false,
    };
    // Packages for development need the compiler.
    let brings = |name: &str| bring.contains(&name) || name.ends_with("-dev") || name.ends_with("-essential");
    !has && !names().any(brings)
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

/// Offers Python for the image of a role.
fn with_python(
    view: &View<'_>,
    role: &RoleView<'_>,
    image: &ImagePlan,
    found: Diagnostic,
    (program, base, installs): (&str, Base, bool),
) -> Diagnostic {
    if program == "python" && base != Base::Busybox && installs {
        // Debian's package has `python3` alone.
        return found.note("write `python3`, which the packages bring").reword(
            &role.run_at(),
            "python ",
            "python3 ",
        );
    }
    if base == Base::Busybox {
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

/// Offers the package of a program for an image.
fn with_package(
    view: &View<'_>,
    image: &ImagePlan,
    found: Diagnostic,
    (program, base): (&str, Base),
) -> Diagnostic {
    if base == Base::Busybox {
        return found.note(format!("use an image with `{program}`"));
    }
    let at: &Pointer = &image.declared_at;
    let Some(block) = view.image_block(image) else {
        let block = json!({"from": image.reference, "apt": [program]});
        return found.note(format!("use an image with `{program}`, or have it installed")).set(at, block);
    };
    let mut apt: Vec<&str> = block.apt.iter().map(String::as_str).collect();
    apt.push(program);
    found.note("list the package in the image").set(&at.key("apt"), json!(apt))
}
