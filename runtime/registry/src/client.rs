//! The registry client of a command.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jobc_image::store::Store;
use jobc_image::{Descriptor, Fetch, Platform, Progress, ProgressFn, Reference};
use jobc_sys::error::Result;

use crate::credentials::Credentials;
use crate::endpoint::Endpoint;
use crate::session::Session;
use crate::settings::Settings;

/// A client for any number of registries, shared by threads.
pub struct Client {
    settings: Settings,
    credentials: Credentials,
    /// By the registry's name: its mirrors, then itself.
    sessions: Mutex<BTreeMap<String, Arc<[Session]>>>,
}

impl Client {
    /// A client with a user's settings and credentials; nothing is sent yet.
    pub fn new(settings: Settings, credentials: Credentials) -> Self {
        Self { settings, credentials, sessions: Mutex::default() }
    }

    /// The endpoints for the images of a registry: its mirrors, then itself.
    pub(crate) fn sessions(&self, registry: &str) -> Result<Arc<[Session]>> {
        let mut known = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sessions) = known.get(registry) {
            return Ok(Arc::clone(sessions));
        }
        let mut endpoints = Vec::new();
        for mirror in &self.settings.of(registry).mirrors {
            endpoints.push(Endpoint::of_mirror(mirror, &self.settings)?);
        }
        endpoints.push(Endpoint::of_registry(registry, &self.settings));
        let sessions = endpoints.into_iter().map(|endpoint| {
            let settings = self.settings.of(&endpoint.registry);
            Session::new(endpoint, &settings, self.credentials.clone())
        });
        let sessions: Arc<[Session]> = sessions.collect::<Result<Vec<_>>>()?.into();
        known.insert(registry.to_owned(), Arc::clone(&sessions));
        Ok(sessions)
    }

    /// The current digest and media type of a name, without fetching the content.
    ///
    /// # Errors
    ///
    /// The registry does not have it or refuses it; the network.
    pub fn resolve(&self, reference: &Reference) -> Result<Descriptor> {
        let sessions = self.sessions(&reference.registry)?;
        try_each(&sessions, &|_| {}, |session| session.look_up(reference))
    }
}

impl Fetch for Client {
    fn fetch(
        &self,
        store: &Store,
        reference: &Reference,
        platform: &Platform,
        on_progress: ProgressFn<'_>,
    ) -> Result<Descriptor> {
        self.pull(store, reference, platform, on_progress)
    }
}

/// Queries one endpoint after the other until one responds; the errors of the earlier ones are reported as notes.
pub(crate) fn try_each<T>(
    sessions: &[Session],
    on_progress: ProgressFn<'_>,
    mut ask: impl FnMut(&Session) -> Result<T>,
) -> Result<T> {
    let (last, mirrors) = sessions.split_last().expect("a registry has at least itself");
    for mirror in mirrors {
        // A mirror that could not be reached once is not waited for again.
        if mirror.is_unreachable() {
            continue;
        }
        match ask(mirror) {
            Ok(found) => return Ok(found),
            Err(error) => {
                on_progress(Progress::Note(format!("{}; trying the next endpoint", error.message())));
            }
        }
    }
    ask(last)
}
