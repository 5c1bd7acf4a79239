//! Images that jobs and bundles name.

use std::sync::atomic::AtomicBool;

use jobc_image::{Descriptor, Platform, ProgressFn, Reference, Store};
use jobc_sys::error::{Error, Kind, Result};

use crate::runtime::args::run::PullPolicy;
use crate::runtime::registries;

/// An image by its reference: from the store, or from its registry.
pub(super) fn find_or_pull(
    store: &Store,
    name: &str,
    pull: PullPolicy,
    progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Descriptor> {
    let reference: Reference = name.parse()?;
    let here = Platform::here();
    let is_kept = |there: &Descriptor| pull != PullPolicy::Always && store.is_complete(there, &here);
    let find = || Ok::<_, Error>(store.find(&reference)?.filter(is_kept));
    if let Some(there) = find()? {
        return Ok(there);
    }
    if pull == PullPolicy::Never {
        return Err(Error::new(Kind::State, format!("the image `{name}` is not in the image store"))
            .help(format!("pull it with `jobc image pull {name}`, or leave out `--pull never`")));
    }
    let _lock = store.lock_work(name, stopped)?;
    match find()? {
        Some(there) => Ok(there),
        None => registries::client(false)?.pull_unpacked(store, &reference, &here, progress, stopped),
    }
}
