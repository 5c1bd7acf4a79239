//! Requests to a rest-server: the token, tries, and answers that are not from a rest-server at all.

use std::io::Read as _;
use std::sync::{Mutex, PoisonError};

use jobc_registry::http::{
    TlsSettings, certificates_from_pem, environment_proxy, host_certificates, parse_retry_after,
};
use jobc_sys::error::{Error, Kind, Result, file_error};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::access::{Access, Token, TokenSource};
use super::status::{ApiError, Status};
use crate::http::header::{ACCEPT, AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE, RETRY_AFTER};
use crate::http::{
    self, Agent, Body, MAX_ANSWER_BYTES, MAX_ERROR_TEXT, Method, Notice, READ_TIMEOUT, Request, Response,
    Temporary,
};

/// The type of a job's configuration: the server reads `text/*` as it is (pai, `src/rest-server/src/config/express.js`).
const YAML: &str = "text/yaml";
const JSON: &str = "application/json";

/// A client of one rest-server.
pub(crate) struct Client {
    access: Access,
    token: Mutex<Token>,
    agent: Agent,
    notice: Notice,
}

/// What of a file was sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// From the requested byte on.
    From(Vec<u8>),
    /// The file is not that long.
    Beyond,
    /// There is no such file.
    Absent,
    /// The address is no longer valid.
    Expired,
}

impl Client {
    /// A client; it reads the token, and sends nothing yet.
    pub(crate) fn new(access: Access, notice: Notice) -> Result<Self> {
        let token = Token::read(&access.token)?;
        let trusted = match &access.authority {
            None => vec![],
            Some(path) => {
                let text = std::fs::read(path).map_err(|error| file_error("read", path, &error))?;
                let found = certificates_from_pem(&text).unwrap_or_default();
                if found.is_empty() {
                    let message = format!("`{}` contains no certificate in PEM format", path.display());
                    return Err(Error::new(Kind::Config, message));
                }
                found
            }
        };
        let host = if trusted.is_empty() { host_certificates() } else { &[] };
        let tls = TlsSettings { trusted, host, ..TlsSettings::default() };
        let agent = http::agent(tls, environment_proxy(&access.server))
            .map_err(|why| Error::new(Kind::System, format!("cannot set up TLS: {why}")))?;
        Ok(Self { access, token: Mutex::new(token), agent, notice })
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// The user's name on the cluster.
    pub(crate) fn user(&self) -> String {
        self.token().user
    }

    fn token(&self) -> Token {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads an answer.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> std::result::Result<T, ApiError> {
        self.decode(self.call(&Method::GET, path, None)?)
    }

    /// Reads an answer; none if it does not exist.
    pub(crate) fn find<T: DeserializeOwned>(&self, path: &str) -> std::result::Result<Option<T>, ApiError> {
        match self.get(path) {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is(404) && !error.is_unknown_route() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a text, such as a job's configuration.
    pub(crate) fn text(&self, path: &str) -> std::result::Result<String, ApiError> {
        let bytes = self.bytes(self.call(&Method::GET, path, None)?)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Submits a job. As an answer can be lost and the request repeated, the caller must expect 409.
    pub(crate) fn post(&self, path: &str, yaml: &str) -> std::result::Result<(), ApiError> {
        let answer = self.call(&Method::POST, path, Some((YAML, yaml.as_bytes())))?;
        self.decode::<Value>(answer).map(drop)
    }

    /// Sets something.
    pub(crate) fn put(&self, path: &str, value: &Value) -> std::result::Result<(), ApiError> {
        let text = value.to_string();
        let answer = self.call(&Method::PUT, path, Some((JSON, text.as_bytes())))?;
        self.decode::<Value>(answer).map(drop)
    }

    /// Reads a file of output from a byte on. The token is not sent: the address has one of its own.
    pub(crate) fn piece(&self, uri: &str, from: u64) -> std::result::Result<Piece, ApiError> {
        let uri = if uri.starts_with('/') { format!("{}{uri}", self.access.portal) } else { uri.to_owned() };
        let attempt = || {
            let mut headers = Vec::new();
            if from > 0 {
                headers.push((RANGE.as_str(), format!("bytes={from}-")));
            }
            let request =
                Request { method: &Method::GET, uri: &uri, headers, body: None, idle: READ_TIMEOUT };
            // The address is not shown: it has a token.
            let answer = http::send(&self.agent, request)
                .map_err(|why| ApiError::Connection(format!("{}: {why}", self.access.portal)))?;
            match answer.status().as_u16() {
                401 | 403 => Ok(Piece::Expired),
                404 => Ok(Piece::Absent),
                416 => Ok(Piece::Beyond),
                206 if starts_at(&answer, from) => Ok(Piece::From(self.bytes(answer)?)),
                // Without ranges, the whole file is sent.
                200 | 206 => {
                    let all = self.bytes(answer)?;
                    let from = usize::try_from(from).unwrap_or(usize::MAX);
                    Ok(all.get(from..).map_or(Piece::Beyond, |rest| Piece::From(rest.to_vec())))
                }
                _ => Err(ApiError::Status(read_status(answer))),
            }
        };
        http::repeat(&self.notice, attempt, temporary)
    }

    fn call(
        &self,
        method: &Method,
        path: &str,
        body: Option<(&str, &[u8])>,
    ) -> std::result::Result<Response<Body>, ApiError> {
        let uri = format!("{}{path}", self.access.server);
        let mut renewed = false;
        let attempt = || loop {
            let token = self.token();
            let mut headers =
                vec![(ACCEPT.as_str(), "*/*".to_owned()), (AUTHORIZATION.as_str(), token.header())];
            headers.extend(body.map(|(kind, _)| (CONTENT_TYPE.as_str(), kind.to_owned())));
            let bytes = body.map(|(_, bytes)| bytes.to_vec());
            let request = Request { method, uri: &uri, headers, body: bytes, idle: READ_TIMEOUT };
            let answer = http::send(&self.agent, request)
                .map_err(|why| ApiError::Connection(format!("{}: {why}", self.access.server)))?;
            let http = answer.status();
            if http.is_success() {
                return Ok(answer);
            }
            if http.as_u16() == 401 && !renewed && self.renew(&token) {
                renewed = true;
                continue;
            }
            return Err(self.refused(answer, &token));
        };
        http::repeat(&self.notice, attempt, temporary)
    }

    /// Reads the token again if its file has another one by now.
    fn renew(&self, refused: &Token) -> bool {
        if matches!(self.access.token, TokenSource::Env(_)) {
            return false;
        }
        let Ok(token) = Token::read(&self.access.token) else { return false };
        let is_new = !token.is_same(refused);
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
        is_new
    }

    fn refused(&self, answer: Response<Body>, token: &Token) -> ApiError {
        let server = &self.access.server;
        let header = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        if let (true, Some(to)) = (answer.status().is_redirection(), header) {
            let to = to.split(['?', '#']).next().unwrap_or_default();
            return ApiError::NotApi(format!("`{server}` redirects to `{to}`"));
        }
        let is_page = is_page(&answer);
        let mut status = read_status(answer);
        // A proxy in front of the server reports its own errors as pages.
        if is_page && !http::is_temporary(status.http) {
            return ApiError::NotApi(format!("`{server}` answers {} with a web page", status.http));
        }
        if status.http == 401 {
            status.renewal = Some(token.renewal(&self.access.token));
        }
        ApiError::Status(status)
    }

    fn bytes(&self, mut answer: Response<Body>) -> std::result::Result<Vec<u8>, ApiError> {
        let mut bytes = Vec::new();
        let read = answer.body_mut().as_reader().take(MAX_ANSWER_BYTES).read_to_end(&mut bytes);
        let server = &self.access.server;
        read.map_err(|error| ApiError::Connection(format!("{server}: the answer broke off: {error}")))?;
        Ok(bytes)
    }

    fn decode<T: DeserializeOwned>(&self, answer: Response<Body>) -> std::result::Result<T, ApiError> {
        let server = &self.access.server;
        if is_page(&answer) {
            return Err(ApiError::NotApi(format!("`{server}` answers with a web page")));
        }
        let bytes = self.bytes(answer)?;
        serde_json::from_slice(&bytes).map_err(|error| {
            ApiError::NotApi(format!("`{server}` does not answer as a rest-server: {error}"))
        })
    }
}

/// Whether a request is repeated.
fn temporary(error: &ApiError) -> Option<Temporary> {
    match error {
        ApiError::Status(status) if http::is_temporary(status.http) => Some(Temporary {
            why: format!("the server answered {}", status.http),
            retry_after: status.retry_after,
        }),
        ApiError::Connection(why) => Some(Temporary { why: why.clone(), retry_after: None }),
        _ => None,
    }
}

fn is_page(answer: &Response<Body>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}

/// Whether a partial answer starts at a byte: `bytes 100-199/200`.
fn starts_at(answer: &Response<Body>, from: u64) -> bool {
    let range = answer.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")))
}

fn read_status(mut answer: Response<Body>) -> Status {
    let header = answer.headers().get(RETRY_AFTER).and_then(|value| parse_retry_after(value.to_str().ok()?));
    let http = answer.status().as_u16();
    let mut bytes = Vec::new();
    let _ = answer.body_mut().as_reader().take(1 << 20).read_to_end(&mut bytes);
    let mut status: Status = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
        let text: String = String::from_utf8_lossy(&bytes).chars().take(MAX_ERROR_TEXT).collect();
        // A page says nothing in its first lines.
        let message = if text.trim_start().starts_with('<') { String::new() } else { text };
        Status { message, ..Status::default() }
    });
    status.http = http;
    status.retry_after = header;
    status
}
