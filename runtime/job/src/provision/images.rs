//! The images of a job in the store: they stay while the job is there, and their layers are unpacked for its tasks.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::large::large;
use crate::allocate::image::Image;
use crate::folder::Folder;
use crate::submission::Submission;
use jobc_image::progress::untold;
use jobc_image::store::Hold;
use jobc_image::{Platform, Store, unpack};
use jobc_sys::error::Result;
use jobc_sys::id::TaskId;

/// Says that the images of a job are in use, until what is returned is dropped.
///
/// # Errors
///
/// There is no such store any more.
pub fn hold(submission: &Submission) -> Result<Option<Hold>> {
    let Some(images) = &submission.images else { return Ok(None) };
    let digests: Vec<_> = images.roles.values().map(|image| image.digest.clone()).collect();
    Store::open(&images.store)?.hold(&digests).map(Some)
}

/// Whether tasks get copies of the layers of their images.
pub(super) fn are_copied(submission: &Submission) -> bool {
    submission.images.as_ref().is_some_and(|images| images.copied.is_some())
}

/// Where a task's copy of its layers lies: on a disk, and with the job it goes.
pub(super) fn copy_of(folder: &Folder, task: &TaskId) -> PathBuf {
    large(folder).join("roots").join(task.to_string())
}

/// The layers of a role's image as folders, the lowest first, and what the image says of the process; nothing for a role
/// whose image is in no store.
pub(super) fn root(
    submission: &Submission,
    role: &str,
    stopped: &AtomicBool,
) -> Result<Option<(Vec<PathBuf>, Image)>> {
    let Some((images, image)) = submission.images.as_ref().and_then(|all| Some((all, all.roles.get(role)?)))
    else {
        return Ok(None);
    };
    let store = Store::open(&images.store)?;
    let image = store.image(image, &Platform::here())?;
    // Whoever submitted the job has unpacked them already, and showed how far it was.
    let layers = unpack::layers(&store, &image, &untold, stopped)?;
    Ok(Some((layers, Image::of(&image.config.config))))
}
