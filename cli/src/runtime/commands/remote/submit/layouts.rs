//! The images of a job for a machine: built or read here, and sent there as OCI image layouts.
//!
//! An image of this host gets a name with its digest there, so changed content makes a different job. A registry image
//! in the store of this host is sent too, unless the remote host has it; an image that neither has is pulled there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use jobc_image::manifest::media;
use jobc_image::progress::ignore_progress;
use jobc_image::{Descriptor, Platform, Reference, Store, source};
use jobc_remote::host::{FileSource, ImageLayout, SendFile, Tree};
use jobc_schema::plan::{ImageSource, JobPlan};
use jobc_sys::error::{Error, Kind, Result};
use serde_json::json;

use super::images::{TAG_LENGTH, repository};
use crate::runtime::commands::image;

/// Names the images of the jobs as the machine will have them, and returns those that this host has.
pub(super) fn provide(
    jobs: &mut [JobPlan],
    built: &BTreeMap<String, Descriptor>,
    directory: &Path,
    image_root: Option<&Path>,
) -> Result<Vec<ImageLayout>> {
    let is_wanted =
        |job: &JobPlan| job.images.values().any(|image| !matches!(image.source, ImageSource::Host { .. }));
    if !jobs.iter().any(is_wanted) {
        return Ok(Vec::new());
    }
    let store = image::open(image_root)?;
    let mut layouts: BTreeMap<String, ImageLayout> = BTreeMap::new();
    for job in jobs {
        let job_name = job.name.clone();
        for (name, image) in &mut job.images {
            let found = match &image.source {
                ImageSource::Reference {} => {
                    let reference: Reference = image.reference.parse()?;
                    store.find(&reference)?.filter(|found| store.is_complete(found, &Platform::here()))
                }
                ImageSource::File { path } => {
                    let path = directory.join(path);
                    if is_root_file_system(&path) {
                        continue;
                    }
                    let found = source::import_one(&store, &path, &ignore_progress, &AtomicBool::new(false))?;
                    rename(image, &format!("{job_name}-{name}"), &found);
                    Some(found)
                }
                _ => {
                    let found = built.get(&image.reference).cloned();
                    if let Some(found) = &found {
                        let name = repository(&image.reference).to_owned();
                        rename(image, &name, found);
                    }
                    found
                }
            };
            if let Some(found) = found
                && !layouts.contains_key(&image.reference)
            {
                layouts.insert(image.reference.clone(), layout(&store, &image.reference, &found)?);
            }
        }
    }
    Ok(layouts.into_values().collect())
}

/// Names the images of the jobs as [`provide`] would, without their digests: a dry run makes none.
pub(super) fn assume(jobs: &mut [JobPlan], directory: &Path) {
    for job in jobs {
        for (name, image) in &mut job.images {
            match &image.source {
                ImageSource::File { path } if is_root_file_system(&directory.join(path)) => continue,
                ImageSource::File { .. } => image.reference = format!("{}-{name}", job.name),
                source if source.is_built() => {}
                _ => continue,
            }
            image.source = ImageSource::Reference {};
        }
    }
}

/// Whether a path is a directory that is not an image, which is refused with the other problems of the job.
fn is_root_file_system(path: &Path) -> bool {
    path.is_dir() && !path.join("oci-layout").is_file()
}

/// Makes the plan refer to an image by its digest.
fn rename(image: &mut jobc_schema::plan::ImagePlan, name: &str, found: &Descriptor) {
    image.reference = format!("{name}:{}", &found.digest.hex()[..TAG_LENGTH]);
    image.source = ImageSource::Reference {};
}

/// The files of an image for this host's platform.
fn layout(store: &Store, reference: &str, found: &Descriptor) -> Result<ImageLayout> {
    let image = store.image(found, &Platform::here())?;
    let mut tree = Tree::default();
    let parts = [&image.descriptor, &image.manifest.config].into_iter().chain(&image.manifest.layers);
    for part in parts {
        let file = SendFile {
            digest: part.digest.clone(),
            size: part.size,
            is_executable: false,
            source: FileSource::Path(store.path(&part.digest)),
        };
        tree.file(&format!("blobs/sha256/{}", part.digest.hex()), file);
    }
    let wrong =
        |error: serde_json::Error| Error::new(Kind::System, format!("cannot write an index: {error}"));
    let mut descriptor = image.descriptor.clone();
    descriptor.annotations.clear();
    let index = json!({
        "schemaVersion": 2, "mediaType": media::INDEX, "manifests": [descriptor],
    });
    tree.file("index.json", SendFile::bytes(serde_json::to_vec(&index).map_err(wrong)?));
    tree.file("oci-layout", SendFile::bytes(br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()));
    let digest = image.descriptor.digest.to_string();
    Ok(ImageLayout { reference: reference.to_owned(), digest, tree })
}
