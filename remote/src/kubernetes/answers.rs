//! Responses of a cluster, cached for one command: the jobs of a matrix need the same objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use jobc_sys::parallel::lock;
use serde_json::Value;

use super::client::Client;
use super::rights::Rights;
use super::status::ApiError;
use super::watch::list;

/// The cached response for an object or a list.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The object, or the items of the list as an array.
    Found(Arc<Value>),
    /// It does not exist, or its kind is not served.
    Absent,
    /// This user may not read it.
    Denied,
}

impl Answer {
    /// The object or list, if it could be read.
    pub(crate) fn found(&self) -> Option<&Value> {
        match self {
            Self::Found(value) => Some(value),
            Self::Absent | Self::Denied => None,
        }
    }

    /// The items of a list; none if it could not be read.
    pub(crate) fn items(&self) -> &[Value] {
        self.found().and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Whether it certainly does not exist.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// The answers so far, by path; threads can share them.
#[derive(Default)]
pub(crate) struct Answers {
    known: Mutex<BTreeMap<String, Answer>>,
    rights: Mutex<Option<Arc<Rights>>>,
    /// Missing verbs, by what was asked about.
    missing: Mutex<BTreeMap<String, Vec<&'static str>>>,
    /// The resources that could not be read: `resourcequotas`.
    denied: Mutex<BTreeSet<&'static str>>,
}

impl Answers {
    /// An object.
    pub(crate) fn object(
        &self,
        client: &Client,
        resource: &'static str,
        path: &str,
    ) -> Result<Answer, ApiError> {
        self.ask(resource, path, || client.find::<Value>(path), &|value| value)
    }

    /// The rights of this user in the namespace.
    pub(crate) fn rights(&self, client: &Client) -> Result<Arc<Rights>, ApiError> {
        let mut held = lock(&self.rights);
        if let Some(rights) = &*held {
            return Ok(Arc::clone(rights));
        }
        let rights = Arc::new(Rights::of(client, &client.config().namespace)?);
        *held = Some(Arc::clone(&rights));
        Ok(rights)
    }

    /// Notes something that could not be checked for lack of a right.
    pub(crate) fn note_denied(&self, what: &'static str) {
        lock(&self.denied).insert(what);
    }

    /// The verbs that a user lacks, as a key names them.
    pub(crate) fn verbs(
        &self,
        key: &str,
        ask: impl FnOnce() -> Result<Vec<&'static str>, ApiError>,
    ) -> Result<Vec<&'static str>, ApiError> {
        if let Some(known) = lock(&self.missing).get(key) {
            return Ok(known.clone());
        }
        let missing = ask()?;
        lock(&self.missing).insert(key.to_owned(), missing.clone());
        Ok(missing)
    }

    /// An object without the values of its `data`: of a Secret, only the keys are of interest.
    pub(crate) fn keys(&self, client: &Client, path: &str) -> Result<Answer, ApiError> {
        self.ask("secrets", path, || client.find::<Value>(path), &|mut value| {
            let data = value.get_mut("data").and_then(Value::as_object_mut);
            data.into_iter().flat_map(|data| data.values_mut()).for_each(|value| *value = Value::Null);
            value
        })
    }

    /// All objects of a list.
    pub(crate) fn list(
        &self,
        client: &Client,
        resource: &'static str,
        path: &str,
        query: &str,
    ) -> Result<Answer, ApiError> {
        let key = format!("{path}?{query}");
        let ask = || match list::<Value>(client, path, query) {
            Ok(items) => Ok(Some(Value::Array(items))),
            Err(error) if error.is(404) => Ok(None),
            Err(error) => Err(error),
        };
        self.ask(resource, &key, ask, &|value| value)
    }

    /// The resources that could not be read, reported once: later calls return nothing.
    pub(crate) fn take_denied(&self) -> Vec<&'static str> {
        std::mem::take(&mut *lock(&self.denied)).into_iter().collect()
    }

    fn ask(
        &self,
        resource: &'static str,
        key: &str,
        ask: impl FnOnce() -> Result<Option<Value>, ApiError>,
        keep: &dyn Fn(Value) -> Value,
    ) -> Result<Answer, ApiError> {
        if let Some(known) = lock(&self.known).get(key) {
            return Ok(known.clone());
        }
        let answer = match ask() {
            Ok(Some(value)) => Answer::Found(Arc::new(keep(value))),
            Ok(None) => Answer::Absent,
            Err(error) if error.is(403) => {
                self.note_denied(resource);
                Answer::Denied
            }
            Err(error) => return Err(error),
        };
        lock(&self.known).insert(key.to_owned(), answer.clone());
        Ok(answer)
    }
}
