//! Requests to one registry: authentication, retries, and the meaning of responses.

mod errors;
mod login;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use jobc_sys::error::{Error, Result};
use ureq::http::header::{AUTHORIZATION, CONTENT_LENGTH, RETRY_AFTER};
use ureq::http::{Method, Request, Response, StatusCode};
use ureq::{Agent, Body, SendBody};

use crate::credentials::{Credential, Credentials};
use crate::endpoint::Endpoint;
use crate::retry::{self, Backoff};
use crate::settings::RegistrySettings;
use login::Authorization;

pub(crate) use errors::{no_response, registry_message, unexpected_response};

/// A registry, or a mirror of one, with what lets us in.
pub(crate) struct Session {
    /// Where it is.
    pub(crate) endpoint: Endpoint,
    /// Whether any certificate is accepted.
    insecure: bool,
    agent: Agent,
    credentials: Credentials,
    credential: OnceLock<Result<Option<Credential>>>,
    /// Whether it ever answered.
    responded: AtomicBool,
    /// Whether it could not be reached.
    unreachable: AtomicBool,
    /// The authorization header for requests of a scope; empty until a request needs it.
    authorizations: Mutex<BTreeMap<String, Authorization>>,
}

/// A request.
pub(crate) struct Call<'a> {
    method: Method,
    address: String,
    headers: Vec<(&'static str, String)>,
    payload: Payload<'a>,
    /// The scope that it needs, as registries write it: `repository:NAME:pull`.
    scope: String,
}

/// The body of a request.
pub(crate) enum Payload<'a> {
    /// Nothing.
    None,
    /// A manifest.
    Bytes(&'a [u8]),
    /// A blob, with its size in bytes.
    File(File, u64, &'a (dyn Fn(u64) + Sync)),
}

/// Why a request was not answered.
pub(crate) enum RequestError {
    /// A retry may succeed after such a time.
    Temporary(Error, Option<Duration>),
    /// Another try would end the same.
    Final(Error),
}

impl RequestError {
    /// The error, retryable or not.
    pub(crate) fn into_error(self) -> Error {
        let (Self::Temporary(error, _) | Self::Final(error)) = self;
        error
    }
}

impl From<Error> for RequestError {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl<'a> Call<'a> {
    /// A request to an address; `scope` is what it needs to be allowed.
    pub(crate) fn new(method: Method, address: String, scope: &str) -> Self {
        Self { method, address, headers: Vec::new(), payload: Payload::None, scope: scope.to_owned() }
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Says what is sent with it.
    #[must_use]
    pub(crate) fn payload(mut self, payload: Payload<'a>) -> Self {
        self.payload = payload;
        self
    }
}

impl Session {
    /// Prepares a session with an endpoint; nothing is sent yet.
    pub(crate) fn new(
        endpoint: Endpoint,
        settings: &RegistrySettings,
        credentials: Credentials,
    ) -> Result<Self> {
        let agent = crate::agent::agent(&endpoint.address, settings)?;
        Ok(Self {
            endpoint,
            insecure: settings.insecure,
            agent,
            credentials,
            credential: OnceLock::new(),
            responded: AtomicBool::new(false),
            unreachable: AtomicBool::new(false),
            authorizations: Mutex::default(),
        })
    }

    /// The warning about an endpoint that is not authenticated.
    pub(crate) fn insecure_note(&self) -> Option<String> {
        let name = &self.endpoint.name;
        let is_insecure = self.insecure && self.endpoint.address.starts_with("https://");
        is_insecure.then(|| {
            format!("the certificate of `{name}` is not verified (`insecure: true` in registries.yaml)")
        })
    }

    /// The warning about a registry that is asked without a login, because the credentials could not be looked up.
    pub(crate) fn login_note(&self) -> Option<String> {
        let error = self.lookup_error()?;
        Some(format!("`{}` is used without a login: {}", self.endpoint.name, error.message()))
    }

    /// Sends a request until there is a response or the tries are used up. A response is returned if a retry would not
    /// change it, such as 404.
    pub(crate) fn send(&self, call: &mut Call<'_>) -> Result<Response<Body>> {
        let mut backoff = Backoff::default();
        loop {
            match self.send_once(call) {
                Ok(answer) => return Ok(answer),
                Err(trouble) => wait_for_retry(&mut backoff, trouble)?,
            }
        }
    }

    /// Sends a request, twice if the registry requires authentication first.
    pub(crate) fn send_once(&self, call: &mut Call<'_>) -> std::result::Result<Response<Body>, RequestError> {
        let known = self.authorization(&call.scope);
        let answer = self.exchange(call, known.as_deref())?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return self.classify_response(answer);
        }
        let header = self.log_in(&answer, &call.scope, known.as_deref())?;
        drop(answer);
        let answer = self.exchange(call, Some(&header))?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            self.forget(&call.scope);
            return Err(RequestError::Final(errors::denied(self, &call.scope, answer)));
        }
        self.classify_response(answer)
    }

    fn exchange(
        &self,
        call: &mut Call<'_>,
        authorization: Option<&str>,
    ) -> std::result::Result<Response<Body>, RequestError> {
        let mut request = Request::builder().method(&call.method).uri(&call.address);
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let unwritable = |error: ureq::http::Error| RequestError::Final(errors::unwritable(self, &error));
        let answer = match &mut call.payload {
            // Some registries require the length of an upload's first, empty request, so it is sent.
            Payload::None if matches!(call.method, Method::POST | Method::PUT) => {
                self.agent.run(request.header(CONTENT_LENGTH, 0).body(&[][..]).map_err(unwritable)?)
            }
            Payload::None => self.agent.run(request.body(()).map_err(unwritable)?),
            Payload::Bytes(bytes) => self.agent.run(request.body(*bytes).map_err(unwritable)?),
            Payload::File(file, size, on_progress) => {
                file.seek(SeekFrom::Start(0)).map_err(|error| errors::unreadable(&error))?;
                let mut counted = UploadReader { file, sent: 0, progress: *on_progress };
                let request = request.header(CONTENT_LENGTH, *size);
                self.agent.run(request.body(SendBody::from_reader(&mut counted)).map_err(unwritable)?)
            }
        };
        self.record_response(answer)
    }

    /// Records whether there was a response. An endpoint that never responded is not retried: it is more likely absent
    /// than temporarily unavailable.
    fn record_response(
        &self,
        answer: std::result::Result<Response<Body>, ureq::Error>,
    ) -> std::result::Result<Response<Body>, RequestError> {
        match answer {
            Ok(answer) => {
                self.responded.store(true, Ordering::Relaxed);
                Ok(answer)
            }
            Err(error) => {
                let trouble = errors::no_response(self, &error);
                if self.responded.load(Ordering::Relaxed) {
                    return Err(trouble);
                }
                self.unreachable.store(true, Ordering::Relaxed);
                Err(RequestError::Final(trouble.into_error()))
            }
        }
    }

    /// Whether it could not be reached at the first request.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.unreachable.load(Ordering::Relaxed)
    }

    /// Parts what another try may change from what it will not.
    fn classify_response(&self, answer: Response<Body>) -> std::result::Result<Response<Body>, RequestError> {
        match answer.status() {
            StatusCode::FORBIDDEN => Err(RequestError::Final(errors::refused(self, answer))),
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let retry_after = answer
                    .headers()
                    .get(RETRY_AFTER)
                    .and_then(|value| retry::parse_retry_after(value.to_str().ok()?));
                let mut error = unexpected_response(self, answer);
                if let Some(retry_after) =
                    retry_after.filter(|retry_after| *retry_after > retry::MAX_RETRY_AFTER)
                {
                    error = error.help(format!("it requests a retry after {} s", retry_after.as_secs()));
                }
                Err(RequestError::Temporary(error, retry_after))
            }
            _ => Ok(answer),
        }
    }
}

/// Waits before a retry; returns the error if there is no retry.
pub(crate) fn wait_for_retry(backoff: &mut Backoff, trouble: RequestError) -> Result<()> {
    match trouble {
        RequestError::Final(error) => Err(error),
        RequestError::Temporary(error, retry_after) => match backoff.failed(retry_after) {
            Some(time) => {
                std::thread::sleep(time);
                Ok(())
            }
            None => Err(error),
        },
    }
}

/// A file to upload, with a callback for its progress.
struct UploadReader<'a> {
    file: &'a mut File,
    sent: u64,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl std::io::Read for UploadReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.sent += read as u64;
        (self.progress)(self.sent);
        Ok(read)
    }
}
