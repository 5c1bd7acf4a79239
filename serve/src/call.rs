//! A request of a caller who may send it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::Query;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use hyper::upgrade::OnUpgrade;
use hyper::{StatusCode, Uri};
use serde::de::DeserializeOwned;

use crate::actor::Actor;
use crate::limits::{BODY_TIMEOUT, MAX_BODY_BYTES};
use crate::peer::Peer;
use crate::problem::Problem;
use crate::server::Server;

/// What the line of the audit file says besides who and what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) about: String,
    pub(crate) started: Vec<String>,
    pub(crate) key: Option<[String; 2]>,
}

/// A request of a caller who may send it.
pub(crate) struct Call {
    pub(crate) server: Arc<Server>,
    pub(crate) actor: Actor,
    pub(crate) peer: Peer,
    pub(crate) path: BTreeMap<String, String>,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// In a lock for references to this alone, which go to other threads.
    body: Mutex<Body>,
    pub(crate) upgrade: Option<OnUpgrade>,
    pub(crate) notes: Arc<Mutex<Notes>>,
}

/// What a request came with.
pub(crate) struct Arrival {
    pub(crate) peer: Peer,
    pub(crate) path: BTreeMap<String, String>,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) upgrade: Option<OnUpgrade>,
}

impl Call {
    pub(crate) fn new(server: Arc<Server>, actor: Actor, arrival: Arrival) -> Self {
        let Arrival { peer, path, uri, headers, body, upgrade } = arrival;
        Self {
            server,
            actor,
            peer,
            path,
            uri,
            headers,
            body: Mutex::new(body),
            upgrade,
            notes: Arc::default(),
        }
    }

    /// The body as it arrives; empty afterwards.
    pub(crate) fn take_body(&mut self) -> Body {
        std::mem::take(self.body.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// A part of the path by its name in the pattern.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    /// The parameters of the query.
    ///
    /// # Errors
    /// One of them is wrong or unknown.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        match Query::<T>::try_from_uri(&self.uri) {
            Ok(Query(query)) => Ok(query),
            Err(error) => Err(Problem::bad_request(format!("the query: {}", source_text(&error)))),
        }
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// It is too large, too slow, not JSON, or lacks something.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        Self::parse(&self.bytes_of_json().await?)
    }

    /// A body as JSON.
    ///
    /// # Errors
    /// It is not JSON, or lacks something.
    pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let at = if path == "." { String::new() } else { format!("`{path}`: ") };
            Problem::bad_request(format!("the body: {at}{}", error.inner()))
        })?;
        reader.end().map_err(|error| Problem::bad_request(format!("the body: {error}")))?;
        Ok(value)
    }

    /// The body, which must be declared as JSON.
    ///
    /// # Errors
    /// It is something else, too large or too slow.
    pub(crate) async fn bytes_of_json(&mut self) -> Result<Vec<u8>, Problem> {
        let kind = self.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        // A form of another site cannot send this type without being asked.
        if !kind.eq_ignore_ascii_case("application/json") {
            let detail = "the body must be JSON: write `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        self.bytes().await
    }

    /// The body.
    ///
    /// # Errors
    /// It is too large or too slow.
    pub(crate) async fn bytes(&mut self) -> Result<Vec<u8>, Problem> {
        if self.headers.contains_key(CONTENT_ENCODING) {
            // What is small here may be huge when it is unpacked.
            let detail = "compressed bodies are not accepted";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let body = self.take_body();
        match tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, MAX_BODY_BYTES)).await {
            Ok(Ok(bytes)) => Ok(bytes.to_vec()),
            Ok(Err(error)) if source_text(&error).contains("limit") => Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body has more than {} MiB", MAX_BODY_BYTES >> 20),
            )),
            Ok(Err(error)) => Err(Problem::bad_request(format!("the body: {}", source_text(&error)))),
            Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")),
        }
    }

    /// Whether the caller wants a stream of events.
    pub(crate) fn wants_events(&self) -> bool {
        let accept = self.headers.get_all(hyper::header::ACCEPT).iter();
        accept.filter_map(|value| value.to_str().ok()).any(|value| value.contains("text/event-stream"))
    }

    /// What the line of the audit file says besides who and what.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// An error with the innermost reason, which says most.
fn source_text(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
