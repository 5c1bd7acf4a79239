//! TLS: which certificates of a server are accepted.
//!
//! ureq's own connector takes CAs only, and webpki refuses a server that presents one of them itself
//! (`CaUsedAsEndEntity`). `openssl req -x509` creates such a self-signed certificate with `CA:TRUE`. Go and curl accept
//! it if the user names it, so it is accepted here too.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

/// A certificate with its chain, and its key.
pub type ClientIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The trusted certificates, and the user's own.
#[derive(Default)]
pub struct TlsSettings<'a> {
    /// Certificates that are trusted besides the host's; a server may present one of them itself.
    pub trusted: Vec<CertificateDer<'static>>,
    /// The certificates that the host trusts.
    pub host: &'a [CertificateDer<'static>],
    /// Our own certificate.
    pub client: Option<ClientIdentity>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// The name that the server's certificate must have, instead of the host of the URL.
    pub server_name: Option<String>,
}

/// The certificates in a text in PEM format; none if it contains none.
///
/// # Errors
///
/// The error in the text.
pub fn certificates_from_pem(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// The private key in a text in PEM format.
///
/// # Errors
///
/// The error in the text.
pub fn key_from_pem(text: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound => "it contains no private key".to_owned(),
        other => other.to_string(),
    })
}

/// The part of ureq's chain of connectors that adds TLS to connections of `https` URLs.
#[derive(Clone, Debug)]
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    server_name: Option<String>,
}

impl TlsConnector {
    /// # Errors
    ///
    /// A client certificate that does not fit its key.
    pub fn new(settings: TlsSettings<'_>) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(settings.trusted.iter().chain(settings.host).cloned());
        let roots =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        let verifier = Verifier {
            // Fails if there is no root at all.
            roots: roots.ok(),
            trusted: settings.trusted,
            insecure: settings.insecure,
            provider: Arc::clone(&provider),
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match settings.client {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
            None => builder.with_no_client_auth(),
        };
        Ok(Self { config: Arc::new(config), server_name: settings.server_name })
    }

    /// The beginning of a connection with a host, without its transport.
    ///
    /// # Errors
    ///
    /// The host cannot have a certificate.
    pub(crate) fn start(&self, host: &str) -> Result<ClientConnection, String> {
        let host = self.server_name.as_deref().unwrap_or(host);
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| format!("`{host}` is not a host name"))?;
        ClientConnection::new(Arc::clone(&self.config), name).map_err(|error| error.to_string())
    }
}

/// Accepts what webpki does, and certificates that the user named.
#[derive(Debug)]
struct Verifier {
    roots: Option<Arc<WebPkiServerVerifier>>,
    trusted: Vec<CertificateDer<'static>>,
    insecure: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.insecure {
            return Ok(ServerCertVerified::assertion());
        }
        let Some(roots) = &self.roots else { return Err(CertificateError::UnknownIssuer.into()) };
        match roots.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // webpki checks the time before this, and the name after it.
            Err(error) if is_ca_as_end_entity(&error) && self.trusted.contains(certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// rustls passes on errors of webpki that it has no name for; their type is not public.
fn is_ca_as_end_entity(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(CertificateError::Other(_)))
        && format!("{error:?}").contains("CaUsedAsEndEntity")
}

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let mut connection = self.start(host).map_err(ureq::Error::BadUri)?;
        let mut socket = TransportAdapter::new(transport.boxed(), Arc::clone(&details.current_time));
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let (input, output) = (details.config.input_buffer_size(), details.config.output_buffer_size());
        let stream = StreamOwned { conn: connection, sock: socket };
        Ok(Some(Either::B(TlsTransport { buffers: LazyBuffers::new(input, output), stream })))
    }
}

/// A connection with TLS.
pub struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl std::fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsTransport").finish_non_exhaustive()
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        Ok(self.stream.write_all(&self.buffers.output()[..amount])?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
