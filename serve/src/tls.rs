//! TLS with the certificate and the key of two files.

use std::sync::Arc;

use camino::Utf8Path;
use jobc_sys::error::{Error, Kind, Result, file_error};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What accepts connections with a certificate.
///
/// # Errors
/// A file cannot be read, is not PEM, or the key belongs to another certificate.
pub(crate) fn acceptor(certificate: &Utf8Path, key: &Utf8Path) -> Result<TlsAcceptor> {
    let read =
        |path: &Utf8Path| std::fs::read(path).map_err(|error| file_error("read", path.as_std_path(), &error));
    let wrong = |what: String| Error::new(Kind::Config, what);
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(&read(certificate)?).filter_map(std::result::Result::ok).collect();
    if chain.is_empty() {
        return Err(wrong(format!("`{certificate}` has no certificate in PEM format")));
    }
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| wrong(format!("`{key}` has no private key in PEM format")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| {
            wrong(format!("cannot use the certificate `{certificate}` with the key `{key}`: {error}"))
        })?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
