//! The page: files that were embedded when this program was built, or those of a directory.

use std::io::Read as _;
use std::os::fd::AsFd as _;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use camino::Utf8Path;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue,
    IF_NONE_MATCH, VARY,
};
use hyper::{Method, StatusCode};
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use crate::problem::Problem;
use crate::random::hex;
use crate::reply::typed;

/// The compressed files by their names.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The largest file of a directory.
const MAX_FILE: u64 = 64 << 20;

/// What the page itself shows, whatever comes after it: jobs have dots in their names.
const VIEWS: [&str; 4] = ["jobs", "sweeps", "new", "host"];

/// What a program that was built without the page answers.
const WITHOUT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>jobc</title>\
    <h1>This jobc was built without its page</h1>\
    <p>The API is at <a href=\"/api/v1/openapi.json\"><code>/api/v1</code></a>. The programs of a release have the page; \
    in a checkout, <code>serve/page/build</code> makes it, and the next <code>cargo build</code> embeds it.</html>";

/// Answers with a file of the page. Paths without an extension are the page's own.
pub(crate) fn answer(directory: Option<&Utf8Path>, request: &Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Problem::new(StatusCode::METHOD_NOT_ALLOWED, "the page can only be read").into_response();
    }
    let path = request.uri().path().trim_start_matches('/');
    if path.starts_with("api/") {
        return Problem::not_found("no such path in the API").into_response();
    }
    let first = path.split('/').next().unwrap_or_default();
    let is_file = !VIEWS.contains(&first) && path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let name = if is_file { path } else { "index.html" };
    let file = match directory {
        Some(directory) => read(directory, name),
        None => FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| bytes.to_vec()),
    };
    match file {
        Some(bytes) => compressed(name, bytes, request.headers()),
        None if name == "index.html" => typed("text/html; charset=utf-8", WITHOUT),
        None => Problem::not_found("the page has no such file").into_response(),
    }
}

/// A file of a directory; nothing that lies outside of it.
fn read(directory: &Utf8Path, name: &str) -> Option<Vec<u8>> {
    let root = std::fs::File::open(directory).ok()?;
    let name = std::ffi::CString::new(format!("{name}.gz")).ok()?;
    let file =
        jobc_sys::open_inside::open_inside(root.as_fd(), &name, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let mut bytes = vec![];
    std::fs::File::from(file).take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn compressed(name: &str, bytes: Vec<u8>, headers: &HeaderMap) -> Response {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let tag = format!("\"{}\"", &hex(&Sha256::digest(&bytes))[..32]);
    if text(IF_NONE_MATCH) == tag {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        add(&mut response, name, &tag);
        return response;
    }
    let mut response = if text(ACCEPT_ENCODING).contains("gzip") {
        let mut response = typed(media_type(name), bytes);
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        // curl and other programs do not ask for compressed files.
        let mut plain = vec![];
        let mut reader = flate2::read::GzDecoder::new(&bytes[..]).take(MAX_FILE);
        if reader.read_to_end(&mut plain).is_err() {
            return Problem::not_found("the page has no such file").into_response();
        }
        typed(media_type(name), plain)
    };
    add(&mut response, name, &tag);
    response
}

fn add(response: &mut Response, name: &str, tag: &str) {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    let caching = if has_digest(name) { "private, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type(name)));
}

/// Whether a name has a digest of the content in it: `page-1A2B3C4D.js`.
fn has_digest(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    stem.rsplit_once('-').is_some_and(|(_, end)| {
        end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    })
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
}
