//! The results of steps as an image: what `--cache-to` sends to a registry, and `--cache-from` reads.
//!
//! The image has the layers of all steps. Its configuration has the table of steps under [`FIELD`]: the same lines that
//! the cache of the store has, by the steps' keys. So every registry takes it, and any other tool sees an image.

use serde_json::{Value, json};

use super::cache::Cache;
use super::layer::StepResult;
use crate::config::{Config, RootFs};
use crate::manifest::{Descriptor, Manifest, media};
use crate::platform::Platform;
use crate::store::Store;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result};

/// The field of the configuration.
const FIELD: &str = "jobc.cache.v1";

/// Creates an image of the cached results of steps.
///
/// # Errors
///
/// No space left, or the disk fails.
pub fn export_cache(store: &Store, steps: &[Digest]) -> Result<Descriptor> {
    let cache = Cache::new(store, false)?;
    let (mut table, mut layers, mut diff_ids) = (serde_json::Map::new(), Vec::new(), Vec::new());
    for key in steps {
        let Some(result) = cache.get(key) else { continue };
        table.insert(key.to_string(), json!(result.line().trim_end()));
        if let Some(layer) = result.layer
            && !diff_ids.contains(&layer.diff_id)
        {
            diff_ids.push(layer.diff_id);
            layers.push(layer.blob);
        }
    }
    let here = Platform::here();
    let mut config = Config { architecture: here.architecture, os: here.os, ..Config::default() };
    config.rootfs = RootFs { diff_ids, ..RootFs::default() };
    config.rest.insert(FIELD.to_owned(), Value::Object(table));
    let config = store.put_json(&config, media::CONFIG)?;
    store.put_json(&Manifest::new(config, layers), media::MANIFEST)
}

/// Adds the results of steps that an image has to the cache; returns how many were added.
///
/// # Errors
///
/// It is not such an image, or the disk fails.
pub fn import_cache(store: &Store, descriptor: &Descriptor) -> Result<usize> {
    let image = store.image(descriptor, &Platform::here())?;
    let Some(Value::Object(table)) = image.config.rest.get(FIELD) else {
        let error = format!("the image {} has no build cache of jobc", descriptor.digest);
        return Err(Error::new(Kind::Config, error).help("write it with `jobc image build --cache-to`"));
    };
    let cache = Cache::new(store, false)?;
    let mut added = 0;
    for (key, line) in table {
        let (Ok(key), Some(line)) = (key.parse::<Digest>(), line.as_str()) else { continue };
        // Only what is in the image, and whole.
        let result = StepResult::parse(line).filter(|result| match &result.layer {
            Some(layer) => image.manifest.layers.iter().any(|blob| blob.digest == layer.blob.digest),
            None => true,
        });
        if let Some(result) = result.filter(|_| cache.get(&key).is_none()) {
            cache.put(&key, &result)?;
            added += 1;
        }
    }
    Ok(added)
}
