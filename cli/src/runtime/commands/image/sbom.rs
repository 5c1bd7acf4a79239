//! `jobc image sbom`: writes a software bill of materials of an image.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use camino::Utf8Path;
use jobc_image::{Platform, Reference, Store, diff, packages, sbom};
use jobc_schema::plan::{ImageSource, JobPlan};
use jobc_sys::error::{Error, Kind, Result as RuntimeResult};

use super::name::{find, platform};
use crate::outcome::Outcome;
use crate::runtime::args::image_tools::SbomArgs;
use crate::runtime::commands::jobs::Result;
use crate::runtime::message::container_error;
use crate::runtime::output::write_file;
use crate::terminal;

pub(super) fn run(args: &SbomArgs, store: &Store) -> Result<ExitCode> {
    let platform = platform(args.platform.as_deref())?;
    let found = find(store, &args.image)?;
    let name = found.name.unwrap_or_else(|| found.descriptor.digest.to_string());
    let text = document(store, &name, &platform)?;
    match &args.output {
        None => terminal::print(&text),
        Some(path) => write_file(path, &text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The document of an image in the store, by its name or its whole digest.
pub(super) fn document(store: &Store, name: &str, platform: &Platform) -> RuntimeResult<String> {
    let images = store.images()?;
    let by_digest = images.iter().find(|image| image.descriptor.digest.to_string() == name);
    let (own_name, descriptor) = if let Some(found) = by_digest {
        (None, found.descriptor.clone())
    } else {
        let reference: Reference = name.parse()?;
        let found = store.find(&reference)?.ok_or_else(|| {
            let message = format!("the image `{}` is not in the image store", reference.familiar());
            Error::new(Kind::State, message)
                .help("pull it with `jobc image pull`, or build it with `jobc run`")
        })?;
        (Some(reference), found)
    };
    let image = store.image(&descriptor, platform)?;
    let inventory = packages::read(store, &image, &AtomicBool::new(false))?;
    let base = diff::base_of(store, &image)?;
    let base_name: Option<Reference> = base.as_ref().and_then(|base| {
        let has_base = |other: &&jobc_image::store::NamedImage| {
            store.images_in(&other.descriptor).iter().any(|image| image.descriptor == base.descriptor)
        };
        let mut names: Vec<&String> =
            images.iter().filter(has_base).filter_map(|other| other.name.as_ref()).collect();
        names.sort();
        names.first()?.parse().ok()
    });
    Ok(sbom::document(&sbom::Subject {
        name: own_name.as_ref(),
        digest: &descriptor.digest,
        image: &image,
        base: base.as_ref().map(|base| (&base.descriptor.digest, base_name.as_ref())),
        inventory: &inventory,
        version: env!("CARGO_PKG_VERSION"),
    }))
}

/// Writes the documents of the images of jobs that are in the store. Those that are not are errors, and the others are
/// written.
pub(crate) fn write_of_jobs(store: &Store, jobs: &[&JobPlan], directory: &Utf8Path) -> Outcome {
    let mut outcome = Outcome::Success;
    for job in jobs {
        for (name, image) in &job.images {
            if matches!(image.source, ImageSource::Host { .. } | ImageSource::File { .. }) {
                continue;
            }
            let path = directory.join(&job.name).join(&job.target.name).join(format!("{name}.cdx.json"));
            let written = document(store, &image.reference, &Platform::here())
                .and_then(|text| write_file(path.as_std_path(), &text));
            if let Err(error) = written {
                terminal::eprint(&container_error(&error));
                outcome = Outcome::Errors;
            }
        }
    }
    outcome
}
