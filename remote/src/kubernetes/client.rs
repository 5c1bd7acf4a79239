//! Requests to an API server: credentials, timeouts, and a bounded number of tries.

use std::io::Read as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use jobc_registry::http::{
    ClientIdentity, Duplex, TlsConnector, TlsSettings, certificates_from_pem, environment_proxy,
    host_certificates, key_from_pem, parse_retry_after,
};
use jobc_sys::error::{Error, Kind};
use jobc_sys::parallel::lock;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::busy::Busy;
use super::exec_plugin::Credential;
use super::kubeconfig::{ClusterConfig, TokenSource};
use super::status::{ApiError, Status};
use crate::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use crate::http::{
    self, Agent, Body, MAX_ANSWER_BYTES, MAX_ERROR_TEXT, Method, Proxy, READ_TIMEOUT, Request, Response,
    Temporary,
};

pub(crate) use crate::http::Notice;

/// A change to objects.
pub(crate) const JSON: &str = "application/json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Headers of a request by name.
pub(crate) type Headers<'a> = Vec<(&'a str, String)>;

/// A client of one cluster; threads can share it.
pub(crate) struct Client {
    config: ClusterConfig,
    session: Mutex<Option<Session>>,
    notice: Notice,
    busy: Busy,
}

/// A connection pool with the credentials that it uses.
#[derive(Clone)]
struct Session {
    agent: Agent,
    /// For connections that the agent cannot make.
    tls: TlsConnector,
    proxy: Option<Proxy>,
    token: Option<String>,
    credential: Credential,
}

impl Client {
    pub(crate) fn new(config: ClusterConfig, notice: Notice) -> Self {
        Self { config, session: Mutex::new(None), notice, busy: Busy::default() }
    }

    pub(crate) fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// Tells the user something that needs no action.
    pub(crate) fn notice(&self, text: &str) {
        (self.notice)(text);
    }

    /// Reads an object or a list.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        decode(self.call(&Method::GET, path, None)?)
    }

    /// Reads an object; none if it does not exist.
    pub(crate) fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ApiError> {
        match self.get(path) {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object. As an answer can be lost and the request repeated, the caller must expect 409.
    pub(crate) fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        decode(self.call(&Method::POST, path, Some((JSON, object)))?)
    }

    /// Changes an object by a patch of that type.
    pub(crate) fn patch(&self, path: &str, kind: &'static str, object: &Value) -> Result<Value, ApiError> {
        decode(self.call(&Method::PATCH, path, Some((kind, object)))?)
    }

    /// Deletes an object; `options` are the body of the request.
    pub(crate) fn delete(&self, path: &str, options: &Value) -> Result<(), ApiError> {
        self.call(&Method::DELETE, path, Some((JSON, options))).map(drop)
    }

    /// Opens a stream, which fails if nothing arrives for `idle`.
    pub(crate) fn stream(&self, path: &str, idle: Duration) -> Result<impl std::io::Read + use<>, ApiError> {
        Ok(self.call_with(&Method::GET, path, None, idle)?.into_body().into_reader())
    }

    /// A connection to the server for a protocol that begins as HTTP, and the headers with the credentials.
    pub(crate) fn connect(&self, timeout: Duration) -> Result<(Duplex, Headers<'_>), ApiError> {
        let session = self.session()?;
        let connection = Duplex::connect(&self.config.server, &session.tls, session.proxy.as_ref(), timeout)
            .map_err(|why| ApiError::Connection(format!("{}: {why}", self.config.server)))?;
        Ok((connection, self.credential_headers(&session)))
    }

    /// Removes credentials that were refused; returns whether there can be new ones.
    pub(crate) fn renew(&self) -> bool {
        if self.can_renew() {
            *lock(&self.session) = None;
        }
        self.can_renew()
    }

    fn credential_headers(&self, session: &Session) -> Headers<'_> {
        let mut headers = Vec::new();
        headers
            .extend(session.token.as_ref().map(|token| (AUTHORIZATION.as_str(), format!("Bearer {token}"))));
        headers.extend(self.config.impersonate.iter().map(|(name, value)| (name.as_str(), value.clone())));
        headers
    }

    fn call(
        &self,
        method: &Method,
        path: &str,
        body: Option<(&'static str, &Value)>,
    ) -> Result<Response<Body>, ApiError> {
        self.call_with(method, path, body, READ_TIMEOUT)
    }

    fn call_with(
        &self,
        method: &Method,
        path: &str,
        body: Option<(&'static str, &Value)>,
        idle: Duration,
    ) -> Result<Response<Body>, ApiError> {
        let mut renewed = false;
        let begun = Instant::now();
        let attempt = || loop {
            self.busy.wait();
            let session = self.session()?;
            match self.send(&session, method, path, body, idle) {
                // Credentials may have expired earlier than they said: once with new ones.
                Err(error) if error.is(401) && !renewed && self.can_renew() => {
                    self.forget(&session);
                    renewed = true;
                }
                // The server's own pace, which holds for all threads: not a failure.
                Err(ApiError::Status(status))
                    if status.code == 429
                        && status
                            .retry_after
                            .is_some_and(|asked| self.busy.pause(asked, begun.elapsed(), &*self.notice)) => {}
                result => return result,
            }
        };
        http::repeat(&self.notice, attempt, |error| match error {
            ApiError::Status(status) if http::is_temporary(status.code) => Some(Temporary {
                why: format!("the cluster answered {}", status.code),
                retry_after: status.retry_after,
            }),
            ApiError::Connection(why) => Some(Temporary { why: why.clone(), retry_after: None }),
            _ => None,
        })
    }

    fn send(
        &self,
        session: &Session,
        method: &Method,
        path: &str,
        body: Option<(&'static str, &Value)>,
        idle: Duration,
    ) -> Result<Response<Body>, ApiError> {
        let uri = format!("{}{path}", self.config.server);
        let mut headers = vec![(ACCEPT.as_str(), JSON.to_owned())];
        headers.extend(self.credential_headers(session));
        headers.extend(body.map(|(kind, _)| (CONTENT_TYPE.as_str(), kind.to_owned())));
        let body = body.map(|(_, object)| object.to_string().into_bytes());
        let request = Request { method, uri: &uri, headers, body, idle };
        let response = http::send(&session.agent, request)
            .map_err(|why| ApiError::Connection(format!("{}: {why}", self.config.server)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(ApiError::Status(Box::new(read_status(response))))
    }

    fn can_renew(&self) -> bool {
        matches!(self.config.token, TokenSource::Exec(_) | TokenSource::File(_))
    }

    /// Removes credentials that were refused, unless another thread has replaced them already.
    fn forget(&self, refused: &Session) {
        let mut held = lock(&self.session);
        if held
            .as_ref()
            .is_some_and(|held| held.token == refused.token && held.credential == refused.credential)
        {
            *held = None;
        }
    }

    /// The session of now: credentials that end soon are replaced.
    fn session(&self) -> Result<Session, ApiError> {
        let mut held = lock(&self.session);
        if let Some(session) = held.as_ref().filter(|session| !session.credential.is_stale()) {
            let mut session = session.clone();
            if let TokenSource::File(_) = self.config.token {
                // The file is replaced in time; reading it is cheap.
                session.token = self.token_of_file()?;
            }
            return Ok(session);
        }
        let mut credential = Credential::default();
        let token = match &self.config.token {
            TokenSource::None => None,
            TokenSource::Static(token) => Some(token.clone()),
            TokenSource::File(_) => self.token_of_file()?,
            TokenSource::Exec(plugin) => {
                credential = plugin.run().map_err(ApiError::Local)?;
                credential.token.clone()
            }
        };
        let certificate = credential.certificate.as_ref().or(self.config.certificate.as_ref());
        let tls = tls(&self.config, certificate).map_err(ApiError::Local)?;
        let proxy = proxy(&self.config).map_err(ApiError::Local)?;
        let agent = http::agent(tls.clone(), proxy.clone());
        let session = Session { agent, tls, proxy, token, credential };
        *held = Some(session.clone());
        Ok(session)
    }

    fn token_of_file(&self) -> Result<Option<String>, ApiError> {
        let TokenSource::File(path) = &self.config.token else { return Ok(None) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| ApiError::Local(jobc_sys::error::file_error("read the token", path, &error)))?;
        Ok(Some(text.trim().to_owned()))
    }
}

fn read_status(mut response: Response<Body>) -> Status {
    let code = response.status().as_u16();
    let header =
        response.headers().get(RETRY_AFTER).and_then(|value| parse_retry_after(value.to_str().ok()?));
    let mut bytes = Vec::new();
    let _ = response.body_mut().as_reader().take(1 << 20).read_to_end(&mut bytes);
    let mut status: Status = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
        let text: String = String::from_utf8_lossy(&bytes).chars().take(MAX_ERROR_TEXT).collect();
        Status { message: text.trim().to_owned(), ..Status::default() }
    });
    status.code = code;
    status.retry_after = header.or_else(|| status.details.retry_after_seconds.map(Duration::from_secs));
    status
}

fn decode<T: DeserializeOwned>(mut response: Response<Body>) -> Result<T, ApiError> {
    let mut bytes = Vec::new();
    let read = response.body_mut().as_reader().take(MAX_ANSWER_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| ApiError::Connection(format!("the answer of the cluster broke off: {error}")))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        ApiError::Local(Error::new(
            Kind::System,
            format!("the answer of the cluster is not what the API says: {error}"),
        ))
    })
}

/// The TLS of a configuration.
fn tls(config: &ClusterConfig, certificate: Option<&(Vec<u8>, Vec<u8>)>) -> jobc_sys::Result<TlsConnector> {
    let client = certificate.map(|(certificate, key)| {
        let chain = certificates_from_pem(certificate).map_err(|why| wrong("client certificate", &why))?;
        Ok::<ClientIdentity, Error>((chain, key_from_pem(key).map_err(|why| wrong("client key", &why))?))
    });
    let trusted = config.authorities.as_ref().map(|text| {
        let found = certificates_from_pem(text).map_err(|why| wrong("certificate authority", &why))?;
        if found.is_empty() {
            Err(wrong("certificate authority", "it contains no certificate"))
        } else {
            Ok(found)
        }
    });
    let trusted = trusted.transpose()?;
    // As kubectl: the host's authorities count only if the kubeconfig names none.
    let host = if trusted.is_none() && !config.insecure { host_certificates() } else { &[] };
    TlsConnector::new(TlsSettings {
        trusted: trusted.unwrap_or_default(),
        host,
        client: client.transpose()?,
        insecure: config.insecure,
        server_name: config.server_name.clone(),
    })
    .map_err(|error| wrong("client certificate", &error.to_string()))
}

fn wrong(what: &str, why: &str) -> Error {
    Error::new(Kind::Config, format!("cannot use the {what} of the kubeconfig: {why}"))
}

/// The proxy of a configuration, or of the environment.
fn proxy(config: &ClusterConfig) -> jobc_sys::Result<Option<Proxy>> {
    match &config.proxy {
        Some(url) => Proxy::new(url).map(Some).map_err(|error| wrong("`proxy-url`", &error.to_string())),
        None => Ok(environment_proxy(&config.server)),
    }
}
