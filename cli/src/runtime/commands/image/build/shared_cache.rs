//! `--cache-from` and `--cache-to`: shares results of build steps between hosts through a registry.

use jobc_image::build::{Extras, import_cache};
use jobc_image::{Fetch, Platform, ProgressFn, Reference, Store};
use jobc_sys::error::Result;

use crate::runtime::message::container_warning;
use crate::terminal;

/// Adds the results of caches in registries to that of the store. A cache that cannot be read is reported, and the build
/// goes on without it.
pub(super) fn import(store: &Store, from: &[Reference], fetch: &dyn Fetch, progress: ProgressFn<'_>) {
    for reference in from {
        if let Err(error) = import_one(store, reference, fetch, progress) {
            let text = format!("the build cache `{reference}` cannot be used: {}", error.message());
            terminal::eprint(&container_warning(&text));
        }
    }
}

fn import_one(
    store: &Store,
    reference: &Reference,
    fetch: &dyn Fetch,
    progress: ProgressFn<'_>,
) -> Result<()> {
    let before = store.find(reference)?;
    let descriptor = fetch.fetch(store, reference, &Platform::here(), progress)?;
    let imported = import_cache(store, &descriptor);
    // The name was given by the fetch: a cache is not an image of the user.
    match before {
        Some(before) => store.tag(reference, &before)?,
        None => drop(store.untag(&reference.to_string())?),
    }
    imported.map(drop)
}

/// Sends the results of a build's steps to registries.
pub(super) fn export(
    store: &Store,
    to: &[Reference],
    extras: &Extras,
    plain_http: bool,
    progress: ProgressFn<'_>,
) -> Result<()> {
    if to.is_empty() {
        return Ok(());
    }
    let descriptor = jobc_image::build::export_cache(store, &extras.steps())?;
    let client = crate::runtime::registries::client(plain_http)?;
    for reference in to {
        client
            .push(store, &descriptor, &Platform::here(), reference, progress)
            .map_err(|error| error.under(format_args!("cannot write the build cache `{reference}`")))?;
    }
    Ok(())
}
