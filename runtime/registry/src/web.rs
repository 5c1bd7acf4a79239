//! Downloads files by URL, for `ADD` in a Dockerfile.
//!
//! Of `registries.yaml` only the certificates for all are used: the rest is about registries. Redirects are followed here, so that each
//! host gets the proxy that the environment names for it, and none leads from `https` to `http`.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jobc_image::build::access::{Download, DownloadRequest, Validators, without_password};
use jobc_sys::error::{Error, Kind, Result, describe_io};
use ureq::http::header::{
    ACCEPT_ENCODING, CONTENT_DISPOSITION, CONTENT_LENGTH, ETAG, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED, LOCATION, RETRY_AFTER,
};
use ureq::http::{Request, Response, StatusCode, Uri};
use ureq::{Body, ResponseExt as _};

use crate::agent::agent;
use crate::retry::{Backoff, parse_retry_after};
use crate::session::{RequestError, wait_for_retry};
use crate::settings::RegistrySettings;

/// The limit of Go's client, and so of BuildKit.
const MAX_REDIRECTS: usize = 10;
/// The timeout for the start of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum number of bytes kept of a header.
const MAX_HEADER_LENGTH: usize = 4096;

/// Downloads files from web servers, with the host's certificates and the environment's proxies.
#[derive(Clone, Debug, Default)]
pub struct WebClient {
    /// Files with certificates (PEM) that are trusted besides the host's.
    pub ca: Vec<PathBuf>,
}

impl Download for WebClient {
    fn download(
        &self,
        request: &DownloadRequest<'_>,
        output: &mut File,
        stopped: &AtomicBool,
    ) -> Result<Option<Validators>> {
        let mut backoff = Backoff::default();
        loop {
            match download_once(self, request, output, stopped) {
                Ok(done) => return Ok(done),
                Err(error) => {
                    if stopped.load(Ordering::Relaxed) {
                        return Err(error.into_error());
                    }
                    wait_for_retry(&mut backoff, error)?;
                }
            }
        }
    }
}

fn download_once(
    client: &WebClient,
    request: &DownloadRequest<'_>,
    output: &mut File,
    stopped: &AtomicBool,
) -> std::result::Result<Option<Validators>, RequestError> {
    let shown = without_password(request.url);
    let mut response = follow(client, request, stopped)?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NOT_MODIFIED if request.known.is_some() => return Ok(None),
        status => {
            let retry_after =
                response.headers().get(RETRY_AFTER).and_then(|value| parse_retry_after(value.to_str().ok()?));
            let error =
                Error::new(Kind::System, format!("cannot download `{shown}`: the server answered {status}"));
            let is_temporary = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
            if is_temporary {
                return Err(RequestError::Temporary(error, retry_after));
            }
            return Err(RequestError::Final(error));
        }
    }
    let validators = Validators {
        etag: header(&response, &ETAG),
        last_modified: header(&response, &LAST_MODIFIED),
        disposition: header(&response, &CONTENT_DISPOSITION),
    };
    let announced = header(&response, &CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    let too_large = || {
        let message = format!("cannot download `{shown}`: it is larger than {} bytes", request.limit);
        RequestError::Final(Error::new(Kind::Unsupported, message).help("download it in a `RUN`"))
    };
    if announced.is_some_and(|announced| announced > request.limit) {
        return Err(too_large());
    }
    let disk = |error: std::io::Error| {
        RequestError::Final(Error::new(
            Kind::System,
            format!("cannot write a download: {}", describe_io(&error)),
        ))
    };
    // The leftovers of an earlier try.
    output.set_len(0).and_then(|()| output.rewind()).map_err(disk)?;
    let mut body = response.body_mut().as_reader();
    let mut buffer = vec![0; 1 << 16];
    let mut done = 0;
    loop {
        if stopped.load(Ordering::Relaxed) {
            return Err(Error::new(Kind::State, "the build was canceled").into());
        }
        let read = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let message = format!("the download of `{shown}` broke off after {done} bytes: {error}");
                return Err(RequestError::Temporary(Error::new(Kind::System, message), None));
            }
        };
        done += read as u64;
        if done > request.limit {
            return Err(too_large());
        }
        output.write_all(&buffer[..read]).map_err(disk)?;
    }
    if let Some(announced) = announced.filter(|announced| *announced != done) {
        let message = format!("the download of `{shown}` broke off after {done} of {announced} bytes");
        return Err(RequestError::Temporary(Error::new(Kind::System, message), None));
    }
    Ok(Some(validators))
}

/// Requests a URL, and those that it is redirected to.
fn follow(
    client: &WebClient,
    request: &DownloadRequest<'_>,
    stopped: &AtomicBool,
) -> std::result::Result<Response<Body>, RequestError> {
    let mut url = request.url.to_owned();
    let failed = |url: &str, why: &str| {
        Error::new(Kind::System, format!("cannot download `{}`: {why}", without_password(url)))
    };
    for _ in 0..=MAX_REDIRECTS {
        if stopped.load(Ordering::Relaxed) {
            return Err(Error::new(Kind::State, "the build was canceled").into());
        }
        let response = send(client, &url, request).map_err(|error| failed(&url, &error.to_string()))?;
        if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
            return Ok(response);
        }
        let location =
            header(&response, &LOCATION).ok_or_else(|| failed(&url, "the server redirects to nowhere"))?;
        let next = resolve(response.get_uri(), &location)
            .ok_or_else(|| failed(&url, "the server redirects to an address that is not a URL"))?;
        if url.starts_with("https:") && !next.starts_with("https:") {
            let error = failed(&url, "the server redirects to an address without TLS");
            return Err(error
                .help(format!("write that URL if it can be trusted: `{}`", without_password(&next)))
                .into());
        }
        url = next;
    }
    Err(failed(request.url, &format!("it is redirected more than {MAX_REDIRECTS} times")).into())
}

fn send(
    client: &WebClient,
    url: &str,
    request: &DownloadRequest<'_>,
) -> std::result::Result<Response<Body>, ureq::Error> {
    let settings = RegistrySettings { ca: client.ca.clone(), ..RegistrySettings::default() };
    let agent =
        agent(url, &settings).map_err(|error| ureq::Error::Io(std::io::Error::other(error.message())))?;
    let mut message = Request::get(url).header(ACCEPT_ENCODING, "identity");
    if let Some(known) = request.known {
        match (&known.etag, &known.last_modified) {
            (Some(etag), _) => message = message.header(IF_NONE_MATCH, etag),
            (None, Some(time)) => message = message.header(IF_MODIFIED_SINCE, time),
            (None, None) => {}
        }
    }
    let message = message.body(()).map_err(ureq::Error::Http)?;
    let message = agent
        .configure_request(message)
        .max_redirects(0)
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .build();
    agent.run(message)
}

/// An address that a response names, which may be relative to that of the request (RFC 9110, section 10.2.2).
fn resolve(base: &Uri, location: &str) -> Option<String> {
    let location = location.split('#').next().unwrap_or_default();
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let whole = if let Some((scheme, _)) = location.split_once("://") {
        matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https").then(|| location.to_owned())?
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
        format!("{scheme}://{authority}{directory}/{location}")
    };
    let uri: Uri = whole.parse().ok()?;
    uri.host().filter(|host| !host.is_empty()).map(|_| whole)
}

fn header(response: &Response<Body>, name: &HeaderName) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    (value.len() <= MAX_HEADER_LENGTH).then(|| value.to_owned())
}

#[cfg(test)]
mod tests;
