//! Requests to an API server: credentials, timeouts, and a bounded number of tries.

use std::io::Read as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobc_registry::http::{
    Backoff, ClientIdentity, TlsConnector, TlsSettings, certificates_from_pem, environment_proxy,
    host_certificates, key_from_pem, parse_retry_after,
};
use jobc_sys::error::{Error, Kind};
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use ureq::http::{Method, Request, Response};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, TcpConnector};
use ureq::{Agent, Body, Proxy};

use super::exec_plugin::Credential;
use super::kubeconfig::{ClusterConfig, TokenSource};
use super::status::{ApiError, Status};

/// To find the server and connect to it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// For the start of an answer: admission webhooks may take 30 s each.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// Between two pieces of an answer that is not a stream.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The wait from which on a user is told why nothing happens.
const NOTABLE_DELAY: Duration = Duration::from_secs(2);
/// An answer is not read further than this.
const MAX_ANSWER_BYTES: u64 = 256 << 20;
/// Of an error answer that is not JSON this much is shown.
const MAX_ERROR_TEXT: usize = 300;

/// A change to objects.
pub(crate) const JSON: &str = "application/json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";

/// Gets what happens while a request is repeated, such as `the cluster is busy (429); trying again in 5 s`.
pub(crate) type Notice = Box<dyn Fn(&str) + Send + Sync>;

/// A client of one cluster; threads can share it.
pub(crate) struct Client {
    config: ClusterConfig,
    session: Mutex<Option<Session>>,
    notice: Notice,
}

/// A connection pool with the credentials that it uses.
#[derive(Clone)]
struct Session {
    agent: Agent,
    token: Option<String>,
    credential: Credential,
}

impl Client {
    pub(crate) fn new(config: ClusterConfig, notice: Notice) -> Self {
        Self { config, session: Mutex::new(None), notice }
    }

    pub(crate) fn config(&self) -> &ClusterConfig {
        &self.config
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
        let mut backoff = Backoff::default();
        let mut renewed = false;
        loop {
            let session = self.session()?;
            let (error, retry_after) = match self.send(&session, method, path, body, idle) {
                Ok(response) => return Ok(response),
                // Credentials may have expired earlier than they said: once with new ones.
                Err(error) if error.is(401) && !renewed && self.can_renew() => {
                    self.forget(&session);
                    renewed = true;
                    continue;
                }
                Err(ApiError::Status(status)) if is_temporary(status.code) => {
                    let retry_after = status.retry_after;
                    (ApiError::Status(status), retry_after)
                }
                Err(ApiError::Connection(why)) => (ApiError::Connection(why), None),
                Err(error) => return Err(error),
            };
            let Some(delay) = backoff.failed(retry_after) else { return Err(error) };
            if delay >= NOTABLE_DELAY {
                let why = match &error {
                    ApiError::Status(status) => format!("the cluster answered {}", status.code),
                    ApiError::Connection(why) => why.clone(),
                    ApiError::Local(error) => error.message.clone(),
                };
                (self.notice)(&format!("{why}; trying again in {} s", delay.as_secs()));
            }
            std::thread::sleep(delay);
        }
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
        headers
            .extend(session.token.as_ref().map(|token| (AUTHORIZATION.as_str(), format!("Bearer {token}"))));
        headers.extend(self.config.impersonate.iter().map(|(name, value)| (name.as_str(), value.clone())));
        headers.extend(body.map(|(kind, _)| (CONTENT_TYPE.as_str(), kind.to_owned())));
        let bytes = body.map(|(_, object)| object.to_string().into_bytes());
        let result = if *method == Method::DELETE {
            let request = headers
                .iter()
                .fold(session.agent.delete(&uri), |request, (name, value)| request.header(*name, value));
            let request = request.config().timeout_per_read(Some(idle)).build();
            request.force_send_body().send(&bytes.unwrap_or_default()[..])
        } else {
            let request = Request::builder().method(method.clone()).uri(&uri);
            let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
            let invalid = |error: ureq::http::Error| {
                ApiError::Local(Error::new(
                    Kind::Config,
                    format!("cannot form a request to the cluster: {error}"),
                ))
            };
            let agent = &session.agent;
            if let Some(bytes) = bytes {
                let request = request.body(bytes).map_err(invalid)?;
                agent.run(agent.configure_request(request).timeout_per_read(Some(idle)).build())
            } else {
                let request = request.body(()).map_err(invalid)?;
                agent.run(agent.configure_request(request).timeout_per_read(Some(idle)).build())
            }
        };
        let response = result.map_err(|error| ApiError::Connection(self.describe(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(ApiError::Status(Box::new(read_status(response))))
    }

    fn describe(&self, error: &ureq::Error) -> String {
        let text = error.to_string();
        let text = text.strip_prefix("io: ").unwrap_or(&text);
        format!("{}: {text}", self.config.server)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn can_renew(&self) -> bool {
        matches!(self.config.token, TokenSource::Exec(_) | TokenSource::File(_))
    }

    /// Removes credentials that were refused, unless another thread has replaced them already.
    fn forget(&self, refused: &Session) {
        let mut held = self.lock();
        if held
            .as_ref()
            .is_some_and(|held| held.token == refused.token && held.credential == refused.credential)
        {
            *held = None;
        }
    }

    /// The session of now: credentials that end soon are replaced.
    fn session(&self) -> Result<Session, ApiError> {
        let mut held = self.lock();
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
        let agent = agent(&self.config, certificate).map_err(ApiError::Local)?;
        let session = Session { agent, token, credential };
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

/// Whether a request can be repeated after this status.
fn is_temporary(code: u16) -> bool {
    matches!(code, 429 | 500 | 502 | 503 | 504)
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

fn agent(config: &ClusterConfig, certificate: Option<&(Vec<u8>, Vec<u8>)>) -> jobc_sys::Result<Agent> {
    let wrong = |what: &str, why: &str| {
        Error::new(Kind::Config, format!("cannot use the {what} of the kubeconfig: {why}"))
    };
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
    let tls = TlsConnector::new(TlsSettings {
        trusted: trusted.unwrap_or_default(),
        host,
        client: client.transpose()?,
        insecure: config.insecure,
        server_name: config.server_name.clone(),
    })
    .map_err(|error| wrong("client certificate", &error.to_string()))?;
    let proxy = match &config.proxy {
        Some(url) => Some(Proxy::new(url).map_err(|error| wrong("`proxy-url`", &error.to_string()))?),
        None => environment_proxy(&config.server),
    };
    let settings = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(proxy)
        .user_agent(concat!("jobc/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_per_write(Some(READ_TIMEOUT))
        .max_idle_connections_per_host(4);
    let connector = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(tls);
    Ok(Agent::with_parts(settings.build(), connector, DefaultResolver::default()))
}

/// A value in a query.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}
