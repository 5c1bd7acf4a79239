//! Findings about a Dockerfile that require the build context or the base images.

use jobc_image::dockerfile::ignore::Ignore;
use jobc_image::dockerfile::{Inspection, Refusal, ignored_sources, undefined_variables};
use jobc_image::{Platform, Reference, Store};

use super::dockerfile_file::Dockerfile;
use crate::runtime::args::image::BuildArgs;
use crate::runtime::commands::image::dockerfile_errors;

/// Reports copies of files that `.dockerignore` excludes; returns whether the file makes them errors.
pub(super) fn ignored(file: &Inspection, ignore: &Ignore, args: &BuildArgs, dockerfile: &Dockerfile) -> bool {
    show(file, ignored_sources(file, ignore), args, dockerfile)
}

/// Shows variables without a value, now that the base images are in the store.
pub(super) fn undefined(
    file: &Inspection,
    platform: &Platform,
    store: &Store,
    args: &BuildArgs,
    dockerfile: &Dockerfile,
) -> bool {
    let base = |reference: &str, of: Option<&str>| {
        let platform = of.map_or_else(|| Some(platform.clone()), |text| text.parse().ok())?;
        let reference: Reference = reference.parse().ok()?;
        let image = store.image(&store.find(&reference).ok()??, &platform).ok()?;
        let name = |variable: &String| variable.split('=').next().unwrap_or_default().to_owned();
        Some(image.config.config.env.iter().map(name).collect())
    };
    let known = |found: &Refusal| file.remarks.contains(found) || file.refusals.contains(found);
    let found = undefined_variables(file, &base).into_iter().filter(|found| !known(found)).collect();
    show(file, found, args, dockerfile)
}

fn show(file: &Inspection, found: Vec<Refusal>, args: &BuildArgs, dockerfile: &Dockerfile) -> bool {
    let (errors, remarks) = file.checks.sort(found);
    if !errors.is_empty() || (!remarks.is_empty() && !args.quiet) {
        dockerfile_errors::show(&dockerfile.display_name(), &dockerfile.text, &errors, &remarks, args.format);
    }
    !errors.is_empty()
}
