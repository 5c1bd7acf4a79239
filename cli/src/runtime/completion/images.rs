//! Names of images in the image store.

use std::path::PathBuf;

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use jobc_image::manifest::REF_NAME;
use jobc_image::{Reference, Store};
use serde_json::Value;

use crate::completion::{described, words};
use crate::runtime::settings::image_root;

/// The names of the images of the image store. The store is only read: completion neither creates one nor waits for its
/// lock.
pub(crate) fn images() -> ArgValueCandidates {
    ArgValueCandidates::new(|| names().unwrap_or_default())
}

fn names() -> Option<Vec<CompletionCandidate>> {
    let words = words::before_cursor();
    let root = words::option(&words, "--image-root").map(PathBuf::from);
    let _ = crate::settings::load();
    let root = root.or_else(image_root);
    let root = root.or_else(|| Store::default_path().ok())?;
    let index: Value = serde_json::from_slice(&std::fs::read(root.join("index.json")).ok()?).ok()?;
    let images = index["manifests"].as_array()?.iter().filter_map(|manifest| {
        let name = manifest["annotations"][REF_NAME].as_str()?;
        let short = name.parse::<Reference>().map_or_else(|_| name.to_owned(), |name| name.familiar());
        let digest = manifest["digest"].as_str().unwrap_or_default();
        Some(described(&short, digest.get(..19).unwrap_or(digest)))
    });
    Some(images.collect())
}
