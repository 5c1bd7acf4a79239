//! Facts derived from the tags of public images: `stdlib/images.yaml`.

mod pattern;

use std::cell::RefCell;
use std::sync::LazyLock;

use indexmap::IndexMap;
use jobc_schema::gpu::Vendor;
use jobc_schema::reference::{Parts, Reference};
use serde::{Deserialize, Serialize};

use super::{Version, load};

pub(super) static IMAGES: LazyLock<Images> =
    LazyLock::new(|| load(include_str!(concat!(env!("OUT_DIR"), "/images.json"))));

/// Public images and the patterns of their tags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// The content of the file.
    pub schema: String,
    /// The patterns of tags, by repository.
    pub images: Vec<TagForm>,
    /// The sources of the facts.
    pub sources: Vec<String>,
}

/// A pattern of tags of one repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagForm {
    /// The repository, without the host of Docker Hub and without `library/`.
    pub repo: String,
    /// The pattern: text with placeholders.
    pub tag: String,
    /// The vendor whose GPUs the image is built for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Vendor>,
    /// The operating system, composed of placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// A placeholder for the CUDA version, and its format.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub cuda_by: IndexMap<String, IndexMap<String, String>>,
    /// Existing tags that match the pattern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
}

/// Facts about an image, derived from its reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageFacts {
    /// The CUDA version of its toolkit and libraries.
    pub cuda: Option<String>,
    /// Whether it is built for GPUs.
    pub gpu: bool,
    /// The vendor of the GPUs.
    pub vendor: Option<Vendor>,
    /// The Python version.
    pub python: Option<String>,
    /// The operating system, such as `ubuntu22.04`.
    pub os: Option<String>,
    /// The flavor of a CUDA image: `base`, `runtime` or `devel`; only `devel` includes the compiler.
    pub flavour: Option<String>,
}

/// References of existing images, for completion in an editor.
pub fn known_references() -> impl Iterator<Item = String> {
    IMAGES.images.iter().flat_map(|form| form.seen.iter().map(|tag| format!("{}:{tag}", form.repo)))
}

/// Facts about an image from its reference; `None` for an image or a tag that is not in the table.
///
/// The registry is ignored, so that a mirror's `mirror.example.com/nvidia/cuda:12.4.1-…` is known too.
pub fn facts(reference: &str) -> Option<ImageFacts> {
    // Every lint looks up the image of every role, and most roles have the same.
    RECENT.with_borrow_mut(|recent| {
        if let Some((_, facts)) = recent.iter().find(|(known, _)| known == reference) {
            return facts.clone();
        }
        let facts = look_up(reference);
        recent.truncate(MAX_RECENT - 1);
        recent.insert(0, (reference.to_owned(), facts.clone()));
        facts
    })
}

/// The size of the cache of [`facts`].
const MAX_RECENT: usize = 16;

thread_local! {
    /// The last results of [`facts`], newest first.
    static RECENT: RefCell<Vec<(String, Option<ImageFacts>)>> = const { RefCell::new(vec![]) };
}

fn look_up(reference: &str) -> Option<ImageFacts> {
    let parts = Parts::of(reference);
    let (tag, repository) = (parts.tag?, parts.name.parse().ok()?);
    IMAGES.images.iter().filter(|form| is_repository(&repository, &form.repo)).find_map(|form| {
        let holes = pattern::fill(&form.tag, tag)?;
        Some(read(form, &holes))
    })
}

fn read(form: &TagForm, holes: &IndexMap<String, String>) -> ImageFacts {
    let hole = |name: &str| holes.get(name).cloned();
    let looked_up = || form.cuda_by.iter().find_map(|(name, table)| cuda_of_release(table, holes.get(name)?));
    let os = form.os.as_ref().map(|os| {
        holes.iter().fold(os.clone(), |os, (name, value)| os.replace(&format!("{{{name}}}"), value))
    });
    ImageFacts {
        cuda: hole("cuda").filter(|v| Version::parse(v).is_some()).or_else(looked_up),
        gpu: form.gpu.is_some(),
        vendor: form.gpu,
        python: hole("python"),
        os,
        flavour: hole("flavour"),
    }
}

/// The CUDA version of a release: that of `2.16` also applies to `2.16.1`.
fn cuda_of_release(table: &IndexMap<String, String>, release: &str) -> Option<String> {
    let minor = || release.match_indices('.').nth(1).and_then(|(at, _)| table.get(&release[..at]));
    table.get(release).or_else(minor).cloned()
}

/// Whether an image is from a repository of the table or a mirror of it; `someone/python` is unrelated.
fn is_repository(written: &Reference, known: &str) -> bool {
    written.short_repository() == known
        || known
            .split_once('/')
            .is_some_and(|(host, path)| written.registry == host && written.repository == path)
}
