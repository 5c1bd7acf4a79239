//! Images that go with a job, as OCI image layouts.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use jobc_sys::error::Result;
use jobc_sys::parallel::lock;

use super::answers::{error_of, succeeded};
use super::program::Connection;
use super::scripts::IMPORT;
use crate::host::ImageLayout;

/// How long the import of an image may take.
const IMPORT_TIMEOUT: Duration = Duration::from_hours(1);

/// Sends images to the host that it lacks, each once.
#[derive(Debug, Default)]
pub(super) struct ImageSender(Mutex<BTreeSet<String>>);

impl ImageSender {
    /// Sends an image unless the host has it. Layers that the host got before are not sent again.
    pub(super) fn send(&self, connection: &Connection, image: &ImageLayout) -> Result<()> {
        let mut sent = lock(&self.0);
        if sent.contains(&image.reference) {
            return Ok(());
        }
        if !has(connection, image)? {
            let name = image.digest.rsplit(':').next().unwrap_or_default();
            let directory = format!("{}/images/{name}", connection.directory);
            connection.host.send_tree(&connection.store(), &directory, &image.tree)?;
            let program = connection.program()?.to_owned();
            let words = [IMPORT, "sh", &program, &directory, &image.reference];
            succeeded(connection.name(), connection.script(&words, None, IMPORT_TIMEOUT)?)?;
        }
        sent.insert(image.reference.clone());
        Ok(())
    }
}

/// Whether the host has an image under its name.
fn has(connection: &Connection, image: &ImageLayout) -> Result<bool> {
    let output = connection.jobc(&["image", "inspect", &image.reference, "--format", "json"])?;
    match output.status {
        0 => Ok(true),
        2 => Ok(false),
        _ => Err(error_of(connection.name(), &output)),
    }
}
