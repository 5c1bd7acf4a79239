//! The base of a stage, and the sources of files: another stage, an image, or `scratch`.

use super::{FileOrigin, StepOutcome};
use crate::build::cache::{Key, Layer};
use crate::build::settings::Settings;
use crate::build::{Builder, StageResult};
use crate::config::{Execution, History};
use crate::platform::Platform;
use crate::store::Image;
use jobc_dockerfile::{Build, ImageOrStage, Refusal, Stage as Written};
use jobc_schema::reference::Reference;
use jobc_sys::error::{Error, Kind};

/// The initial state of a stage, and the ONBUILD triggers of its base.
pub(super) fn initial_result(
    builder: &Builder<'_>,
    written: &Written,
) -> StepOutcome<(StageResult, Vec<String>)> {
    Ok(match &written.from {
        ImageOrStage::Scratch => {
            let (settings, _) = Settings::of_base(Execution::default(), None);
            let platform = builder.request.platform.clone();
            let done =
                StageResult { settings, platform, key: Key::of("scratch").finish(), ..StageResult::empty() };
            (done, Vec::new())
        }
        ImageOrStage::Stage(index) => {
            let below = builder.wait_for_stage(*index)?;
            let Settings { execution, author, .. } = below.settings.clone();
            let (settings, triggers) = Settings::of_base(execution, author);
            (StageResult { settings, ..(*below).clone() }, triggers)
        }
        ImageOrStage::Image { reference, platform, span } => {
            if builder.request.extras.directory(reference).is_some() {
                let message = format!("the build context `{reference}` is a directory, not an image");
                let help = "`FROM` takes an image or an OCI layout; `COPY --from` takes a directory too";
                return Err(Refusal::new(span.clone(), message).help(help).into());
            }
            let image = image(builder, reference, platform.as_deref())?;
            let key = key(&image);
            let platform = image.platform();
            let layers = layers(&image);
            let config = image.config;
            let (settings, triggers) = Settings::of_base(config.config, config.author);
            let created = config.created.as_deref().and_then(|time| humantime::parse_rfc3339(time).ok());
            let created = created.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
            let history = complete_history(config.history, layers.len());
            let created = created.map(|created| created.as_secs());
            (StageResult { settings, platform, layers, key, created, history }, triggers)
        }
    })
}

/// The base's name in messages.
pub(super) fn name(build: &Build, from: &ImageOrStage) -> String {
    match from {
        ImageOrStage::Scratch => "scratch".to_owned(),
        ImageOrStage::Image { reference, .. } => reference.clone(),
        ImageOrStage::Stage(index) => match build.stages.get(*index) {
            Some(stage) => stage.name.clone().unwrap_or_else(|| stage.number.to_string()),
            None => index.to_string(),
        },
    }
}

/// The files of a stage or an image.
pub(super) fn file_origin(builder: &Builder<'_>, from: &ImageOrStage) -> StepOutcome<FileOrigin> {
    Ok(match from {
        ImageOrStage::Scratch => {
            FileOrigin { layers: Vec::new(), key: Key::of("scratch").finish(), directory: None }
        }
        ImageOrStage::Stage(index) => {
            let stage = builder.wait_for_stage(*index)?;
            FileOrigin { layers: stage.layers.clone(), key: stage.key.clone(), directory: None }
        }
        ImageOrStage::Image { reference, platform, .. } => {
            if let Some((directory, ignore)) = builder.request.extras.directory(reference) {
                // The key depends on the copied files, not on their source.
                let key = Key::of("directory").finish();
                return Ok(FileOrigin {
                    layers: Vec::new(),
                    key,
                    directory: Some((directory.clone(), ignore.clone())),
                });
            }
            let image = image(builder, reference, platform.as_deref())?;
            FileOrigin { key: key(&image), layers: layers(&image), directory: None }
        }
    })
}

/// An image of the store; if it is missing, it is fetched.
fn image(builder: &Builder<'_>, reference: &str, platform: Option<&str>) -> StepOutcome<Image> {
    let platform: Platform = platform.map_or_else(|| Ok(builder.request.platform.clone()), str::parse)?;
    let named = builder.request.extras.image(reference).cloned();
    let mut name: Reference = named.map_or_else(|| reference.parse().map_err(Error::from), Ok)?;
    name.digest = builder.request.locked.get(reference).cloned().or(name.digest);
    let known = builder.store.find(&name)?;
    // Why an image of the store does not do: it may be there for other platforms only.
    let unusable = known.as_ref().and_then(|known| builder.store.image(known, &platform).err());
    let there = known.filter(|there| !builder.request.pull && builder.store.is_complete(there, &platform));
    let descriptor = match (there, builder.request.fetch) {
        (Some(descriptor), _) => descriptor,
        (None, Some(fetch)) => fetch.fetch(builder.store, &name, &platform, builder.progress).map_err(
            |error| match unusable {
                Some(unusable) if unusable.kind == Kind::Unsupported && error.kind != Kind::Unsupported => {
                    unusable.help(format!("it cannot be pulled either: {}", error.message()))
                }
                _ => error,
            },
        )?,
        (None, None) => {
            if let Some(unusable) = unusable {
                return Err(unusable.into());
            }
            let error =
                Error::new(Kind::Config, format!("the image `{}` is not in the store", name.familiar()));
            return Err(error.help("add it with `jobc image import` or `jobc image pull`").into());
        }
    };
    let image = builder.store.image(&descriptor, &platform)?;
    builder.pin(&image.descriptor.digest)?;
    Ok(image)
}

/// Images with the same layers have the same files, regardless of their names.
fn key(image: &Image) -> jobc_schema::digest::Digest {
    let mut key = Key::of("image");
    key.add_all(image.config.rootfs.diff_ids.iter().map(ToString::to_string));
    key.finish()
}

fn layers(image: &Image) -> Vec<Layer> {
    let blobs = image.manifest.layers.iter();
    let diffs = image.config.rootfs.diff_ids.iter();
    diffs.zip(blobs).map(|(diff_id, blob)| Layer { diff_id: diff_id.clone(), blob: blob.bare() }).collect()
}

/// A history must have an entry for each layer, or none at all (image-spec, config.md); a base without any gets them.
fn complete_history(mut history: Vec<History>, layers: usize) -> Vec<History> {
    let described = history.iter().filter(|entry| !entry.empty_layer).count();
    let missing = (described..layers).map(|_| History {
        comment: Some("a layer of the base, which does not tell how it was made".to_owned()),
        ..History::default()
    });
    history.splice(0..0, missing.collect::<Vec<_>>());
    history
}
