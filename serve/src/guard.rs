//! What holds for every request and answer: the host that it is for, the page that it comes from, headers.
//!
//! A page of another site may have its name resolve to this host (DNS rebinding), and may send requests that carry the
//! cookie of this one (CSRF). The first is known by the host of the request, the second by its origin.

use axum::response::Response;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL,
    CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, StatusCode, Uri};

use crate::problem::Problem;

/// Nothing from elsewhere, no script or style in the page's own text, in no frame. Styles of elements are set by scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
    font-src 'self' data:; connect-src 'self'; worker-src 'self'; frame-src 'self' blob:; manifest-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";
/// For files of jobs: nothing at all, and no storage of the page.
pub(crate) const POLICY_OF_FILES: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// For reports, which the page shows in a frame.
pub(crate) const POLICY_OF_REPORTS: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// The header of the page's own requests: another site cannot send it without being asked.
pub(crate) const OWN_HEADER: &str = "x-jobc-request";

/// The names of this server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    /// Names besides those that always mean this host.
    pub(crate) names: Vec<String>,
    /// Origins of other sites that may send requests, by `--origin`.
    pub(crate) origins: Vec<String>,
}

impl Hosts {
    /// The host of a request, with its port.
    ///
    /// # Errors
    /// It has none, several, or one that is not a name of this server.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<String, Problem> {
        let mut given = headers.get_all(HOST).iter();
        let (first, second) = (given.next(), given.next());
        let host = match (uri.authority(), first, second) {
            (_, _, Some(_)) | (None, None, _) => return Err(Problem::bad_request("write one `Host` header")),
            (Some(authority), _, None) => authority.as_str(),
            (None, Some(host), None) => {
                host.to_str().map_err(|_| Problem::bad_request("the `Host` header is not text"))?
            }
        };
        if self.is_own(host) {
            return Ok(host.to_ascii_lowercase());
        }
        Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "this server does not answer for that host name")
            .hint("start it with `--host NAME` if it is one of its names"))
    }

    fn is_own(&self, host: &str) -> bool {
        let (name, port) = split_port(host);
        if !port.is_empty() && port.parse::<u16>().is_err() {
            return false;
        }
        let name = name.to_ascii_lowercase();
        // An address cannot be made to mean another host.
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost"
            || name.ends_with(".localhost")
            || address.parse::<std::net::IpAddr>().is_ok()
            || self.names.iter().any(|own| own.eq_ignore_ascii_case(&name))
    }

    /// Whether the page that sends a request is of this server, or of one that is named.
    ///
    /// # Errors
    /// It is another one.
    pub(crate) fn check_origin(
        &self,
        host: &str,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        let refused = || Err(Problem::forbidden("a page of another site sent this request"));
        if let Some(origin) = headers.get(ORIGIN) {
            let Ok(origin) = origin.to_str() else { return refused() };
            if self.origins.iter().any(|named| named == origin) {
                return Ok(());
            }
            let of_host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            return match of_host {
                Some(of_host) if same_host(of_host, host) => Ok(()),
                _ => refused(),
            };
        }
        // What browsers say of requests without an origin: a link from elsewhere may open the page, and nothing else.
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let site = text("sec-fetch-site");
        let is_link = *method == Method::GET
            && text("sec-fetch-mode") == "navigate"
            && text("sec-fetch-dest") == "document";
        if site.is_empty() || site == "same-origin" || site == "none" || is_link { Ok(()) } else { refused() }
    }
}

impl Hosts {
    /// What a page of an origin that is named may send.
    pub(crate) fn preflight(&self, origin: Option<&HeaderValue>) -> Response {
        let mut response = Response::new(axum::body::Body::empty());
        if !origin
            .is_some_and(|origin| self.origins.iter().any(|named| named.as_bytes() == origin.as_bytes()))
        {
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            return response;
        }
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, DELETE"));
        let allowed = "authorization, content-type, idempotency-key, last-event-id, x-jobc-request";
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
        response
    }

    /// Lets a page of an origin that is named read an answer (CORS).
    pub(crate) fn share(&self, origin: Option<&HeaderValue>, mut response: Response) -> Response {
        let named =
            origin.filter(|origin| self.origins.iter().any(|named| named.as_bytes() == origin.as_bytes()));
        if let Some(origin) = named {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(VARY, HeaderValue::from_static("Origin"));
            headers.insert(
                HeaderName::from_static("cross-origin-resource-policy"),
                HeaderValue::from_static("cross-origin"),
            );
        }
        response
    }
}

/// Whether two hosts with ports are the same; a port that is the scheme's own may be absent.
fn same_host(a: &str, b: &str) -> bool {
    let plain = |host: &str| {
        let (name, port) = split_port(host);
        let port = if port == "80" || port == "443" { "" } else { port };
        format!("{}:{port}", name.to_ascii_lowercase())
    };
    plain(a) == plain(b)
}

/// The name and the port; empty without one.
fn split_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        // Of an IPv6 address without a port.
        Some((_, port)) if port.ends_with(']') => (host, ""),
        Some((name, port)) => (name, port),
        None => (host, ""),
    }
}

/// Adds the headers that every answer has.
pub(crate) fn protect(response: &mut Response, is_tls: bool) {
    let headers = response.headers_mut();
    let mut add = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    add(CONTENT_SECURITY_POLICY, POLICY);
    add(X_CONTENT_TYPE_OPTIONS, "nosniff");
    add(X_FRAME_OPTIONS, "DENY");
    add(REFERRER_POLICY, "no-referrer");
    add(CACHE_CONTROL, "no-store");
    add(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    add(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    add(
        HeaderName::from_static("permissions-policy"),
        "camera=(), microphone=(), geolocation=(), interest-cohort=()",
    );
    if is_tls {
        add(STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn only_addresses_and_own_names_are_hosts() {
        let hosts = Hosts { names: vec!["jobs.example.org".to_owned()], ..Hosts::default() };
        let check = |host: &str| hosts.check(&Uri::from_static("/"), &headers(&[("host", host)])).is_ok();
        for own in [
            "localhost:8750",
            "127.0.0.1:9",
            "[::1]:80",
            "[::1]",
            "a.localhost",
            "JOBS.example.org:443",
            "10.0.0.7",
        ] {
            assert!(check(own), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "jobs.example.org.evil",
            "",
            "localhost:x",
        ] {
            assert!(!check(other), "{other}");
        }
        assert!(hosts.check(&Uri::from_static("/"), &HeaderMap::new()).is_err());
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let hosts = Hosts { origins: vec!["https://lab.example".to_owned()], ..Hosts::default() };
        let check = |method: Method, pairs: &[(&'static str, &str)]| {
            hosts.check_origin("localhost:8750", &method, &headers(pairs)).is_ok()
        };
        assert!(check(Method::POST, &[("origin", "http://localhost:8750")]));
        assert!(check(Method::POST, &[("origin", "https://lab.example")]));
        assert!(check(Method::POST, &[]), "not a browser");
        for origin in [
            "http://localhost:9999",
            "http://127.0.0.1:8750",
            "null",
            "http://evil.example",
            "localhost:8750",
        ] {
            assert!(!check(Method::POST, &[("origin", origin)]), "{origin}");
            assert!(!check(Method::GET, &[("origin", origin)]), "{origin}");
        }
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert!(check(Method::GET, &link));
        assert!(!check(Method::POST, &link));
        let frame =
            [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        assert!(!check(Method::GET, &frame));
        assert!(!check(Method::GET, &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")]));
    }
}
