//! The images of a job in the store: kept as long as the job runs, with their layers unpacked for its tasks.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::large_data::large_data_directory;
use crate::allocate::image::Image;
use crate::directory::Directory;
use crate::submission::{Images, Submission};
use jobc_image::progress::ignore_progress;
use jobc_image::store::ContentPin;
use jobc_image::{Platform, Store, unpack};
use jobc_sys::error::Result;
use jobc_sys::id::TaskId;

/// Says that the images of a job are in use, until what is returned is dropped.
///
/// # Errors
///
/// The store no longer exists.
pub fn pin_images(submission: &Submission) -> Result<Option<ContentPin>> {
    let Some(images) = &submission.images else { return Ok(None) };
    let digests: Vec<_> = images.roles.values().map(|image| image.digest.clone()).collect();
    open(images)?.pin(&digests).map(Some)
}

/// The store of a job above its shared stores. One of these that has gone since the submission is passed over: where the
/// job needs something of it, the error is about that.
fn open(images: &Images) -> Result<Store> {
    Store::open_above(&images.store, &images.shared).map(|(store, _)| store)
}

/// Whether tasks get copies of the layers of their images.
pub(super) fn are_copied(submission: &Submission) -> bool {
    submission.images.as_ref().is_some_and(|images| images.copied.is_some())
}

/// The directory of a task's copy of its layers: on a disk, and removed with the job.
pub(super) fn copy_of(directory: &Directory, task: &TaskId) -> PathBuf {
    large_data_directory(directory).join("roots").join(task.to_string())
}

/// The layers of a role's image as directories, lowest first, and the image's process settings; `None` for a role whose
/// image is in no store.
pub(super) fn root(
    submission: &Submission,
    role: &str,
    stopped: &AtomicBool,
) -> Result<Option<(Vec<PathBuf>, Image)>> {
    root_as(submission, role, None, stopped)
}

/// The same for tasks in which the caller, without privileges, is this user and group.
pub(super) fn root_as(
    submission: &Submission,
    role: &str,
    inside: Option<(u32, u32)>,
    stopped: &AtomicBool,
) -> Result<Option<(Vec<PathBuf>, Image)>> {
    let Some((images, image)) = submission.images.as_ref().and_then(|all| Some((all, all.roles.get(role)?)))
    else {
        return Ok(None);
    };
    let store = open(images)?;
    let image = store.image(image, &Platform::here())?;
    // The client has unpacked them already and shown the progress.
    let layers = match inside {
        None => unpack::layers(&store, &image, &ignore_progress, stopped)?,
        Some(inside) => unpack::layers_as(&store, &image, inside, &ignore_progress, stopped)?,
    };
    Ok(Some((layers, Image::of(&image.config.config))))
}
