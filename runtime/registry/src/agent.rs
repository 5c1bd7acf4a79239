//! The HTTP client of one registry: its trusted CAs, proxies and timeouts.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobc_sys::error::{Error, Kind, Result};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use ureq::config::RedirectAuthHeaders;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, TcpConnector};
use ureq::{Agent, Proxy};

use crate::settings::RegistrySettings;
use crate::tls::{TlsConnector, TlsSettings};

/// The timeout for looking up a host and connecting to it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for the start of a response: a registry reads the whole request before it responds.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(5);
/// The timeout between two pieces of data.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Creates the client for an address, `http://HOST[:PORT]` or `https://…`.
pub(crate) fn agent(address: &str, settings: &RegistrySettings) -> Result<Agent> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // Blobs are often on other hosts, which must not get the credentials of this one.
        .redirect_auth_headers(RedirectAuthHeaders::SameHost)
        .max_redirects(5)
        .proxy(environment_proxy(address))
        .user_agent(concat!("jobc/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_per_read(Some(IDLE_TIMEOUT))
        .timeout_per_write(Some(IDLE_TIMEOUT))
        .max_idle_connections_per_host(4);
    // Plain HTTP may still lead to TLS, by redirects and token services.
    let connector =
        ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(tls(settings)?);
    Ok(Agent::with_parts(config.build(), connector, DefaultResolver::default()))
}

fn tls(settings: &RegistrySettings) -> Result<TlsConnector> {
    let mut trusted = Vec::new();
    for path in &settings.ca {
        trusted.extend(certificates(path)?);
    }
    let client = settings.client.as_ref();
    let client = client.map(|files| Ok::<_, Error>((certificates(&files.cert)?, key(&files.key)?)));
    let (host, insecure) = (host_certificates(), settings.insecure);
    TlsConnector::new(TlsSettings { trusted, host, client: client.transpose()?, insecure, server_name: None })
        .map_err(|error| {
            let files = settings.client.as_ref().map(|files| files.cert.display().to_string());
            Error::new(
                Kind::Config,
                format!("cannot use the client certificate `{}`: {error}", files.unwrap_or_default()),
            )
        })
}

/// The certificates that this host trusts; `SSL_CERT_FILE` and `SSL_CERT_DIR` name others. Read once.
pub fn host_certificates() -> &'static [CertificateDer<'static>] {
    static CERTIFICATES: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();
    // A certificate that cannot be read is not trusted.
    CERTIFICATES.get_or_init(|| rustls_native_certs::load_native_certs().certs)
}

/// The certificates that this host trusts, and those of files, as the text of one file in PEM format.
///
/// # Errors
///
/// A file that cannot be read or has no certificate.
pub fn certificate_bundle(files: &[PathBuf]) -> Result<String> {
    let mut text = String::new();
    let of_files = files.iter().map(|path| certificates(path)).collect::<Result<Vec<_>>>()?;
    for certificate in of_files.iter().flatten().chain(host_certificates()) {
        text += "-----BEGIN CERTIFICATE-----\n";
        let encoded = STANDARD.encode(certificate);
        for line in encoded.as_bytes().chunks(64) {
            text += &String::from_utf8_lossy(line);
            text.push('\n');
        }
        text += "-----END CERTIFICATE-----\n";
    }
    Ok(text)
}

fn unusable(path: &Path, why: &pem::Error) -> Error {
    let why = match why {
        pem::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    };
    Error::new(Kind::Config, format!("cannot use the certificate file `{}`: {why}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| unusable(path, &error))?;
    if found.is_empty() {
        return Err(Error::new(Kind::Config, format!("`{}` contains no certificate", path.display()))
            .help("certificates must be in PEM format: `-----BEGIN CERTIFICATE-----`"));
    }
    Ok(found)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            Error::new(Kind::Config, format!("`{}` contains no private key", path.display()))
        }
        other => unusable(path, &other),
    })
}

/// The proxy that the environment of this process names for an address, `https://HOST[:PORT]`.
pub fn environment_proxy(address: &str) -> Option<Proxy> {
    proxy(address, |name| std::env::var(name).ok())
}

/// The proxy that the environment names for an address, in the order of curl and Go: by the scheme, then for all; none
/// for this host and for hosts in `NO_PROXY`.
fn proxy(address: &str, variable: impl Fn(&str) -> Option<String>) -> Option<Proxy> {
    let value = |names: [&str; 2]| {
        names.into_iter().find_map(|name| variable(name).filter(|value| !value.is_empty()))
    };
    let uri: ureq::http::Uri = address.parse().ok()?;
    let host = uri.host()?.trim_matches(['[', ']']);
    let here =
        host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    let excluded = |list: String| is_excluded_from_proxy(host, uri.port_u16(), &list);
    if here || value(["NO_PROXY", "no_proxy"]).is_some_and(excluded) {
        return None;
    }
    // `HTTP_PROXY` in capitals can be a header of a CGI request (CVE-2016-5385), which no registry's client is.
    let by_scheme = match uri.scheme_str() {
        Some("https") => value(["HTTPS_PROXY", "https_proxy"]),
        _ => value(["HTTP_PROXY", "http_proxy"]),
    };
    Proxy::new(&by_scheme.or_else(|| value(["ALL_PROXY", "all_proxy"]))?).ok()
}

/// Whether a list of `NO_PROXY` contains a host: itself, a domain above it, a range of addresses in CIDR notation, or
/// everything. An entry with a port, `HOST:PORT`, is only about that port, as in Go.
pub fn is_excluded_from_proxy(host: &str, port: Option<u16>, list: &str) -> bool {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        if let (Some((network, bits)), Ok(address)) = (entry.split_once('/'), host.parse::<IpAddr>()) {
            return is_in_network(address, network, bits);
        }
        let entry = match entry.rsplit_once(':') {
            Some((name, number)) if !name.contains(':') && number.parse::<u16>().is_ok() => {
                if number.parse().ok() != port {
                    return false;
                }
                name
            }
            _ => entry.trim_matches(['[', ']']),
        };
        let entry = entry.trim_start_matches("*.").trim_start_matches('.');
        let above = || host.strip_suffix(entry).is_some_and(|rest| rest.ends_with('.'));
        entry == "*" || host.eq_ignore_ascii_case(entry) || above()
    })
}

/// Whether an address is in a network such as `10.0.0.0/8`.
fn is_in_network(address: IpAddr, network: &str, bits: &str) -> bool {
    let as_bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let ((address, width), (network, other)) = (as_bits(address), as_bits(network));
    width == other && bits <= width && (address ^ network).checked_shr(128 - bits).unwrap_or_default() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, environment: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        proxy(address, variable).map_or_else(|| "straight".to_owned(), |proxy| proxy.uri().to_string())
    }

    #[test]
    fn a_proxy_is_chosen_by_scheme_and_host() {
        let all = [("HTTPS_PROXY", "http://s:1"), ("http_proxy", "http://p:2"), ("ALL_PROXY", "http://a:3")];
        assert_eq!(check("https://r.example", &all), "http://s:1/");
        assert_eq!(check("http://r.example:5000", &all), "http://p:2/");
        assert_eq!(check("http://r.example", &all[2..]), "http://a:3/");
        assert_eq!(check("https://r.example", &[("HTTPS_PROXY", "")]), "straight");
        for here in ["http://localhost:5000", "http://127.0.0.1:5000", "https://[::1]:5000"] {
            assert_eq!(check(here, &all), "straight", "{here}");
        }
    }

    #[test]
    fn hosts_are_left_out_by_range_of_addresses() {
        for (host, list, left_out) in [
            ("10.96.0.1", "10.0.0.0/8", true),
            ("11.96.0.1", "10.0.0.0/8", false),
            ("11.96.0.1", "0.0.0.0/0", true),
            ("10.96.0.1", "10.96.0.1/32,x", true),
            ("10.96.0.1", "10.0.0.0/33", false),
            ("fd00::1", "fd00::/8", true),
            ("fe00::1", "fd00::/8", false),
            ("fd00::1", "[fd00::1]", true),
            ("10.96.0.1", "fd00::/8", false),
        ] {
            assert_eq!(is_excluded_from_proxy(host, None, list), left_out, "{host} {list}");
        }
    }

    #[test]
    fn hosts_are_left_out_by_name_or_domain() {
        for (list, left_out) in [
            ("example", true),
            (".example", true),
            ("*.example", true),
            ("*", true),
            ("x, r.example", true),
            ("ample", false),
            ("r.example:443", true),
            ("r.example:80", false),
            ("10.0.0.0/8", false),
        ] {
            assert_eq!(is_excluded_from_proxy("r.example", Some(443), list), left_out, "{list}");
        }
    }
}
