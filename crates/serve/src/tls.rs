//! TLS to a server whose authorities, or whose very certificate, the caller names.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore};
use rustls::{SignatureScheme, StreamOwned};
use std::io::{Read, Write};
use std::sync::Arc;
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

/// Trusts authorities, and certificates that are named themselves: a self-signed one is its own authority.
#[derive(Debug)]
struct Trusted {
    authorities: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.authorities.verify_server_cert(end_entity, intermediates, name, stapled, now) {
            // The authority itself answers, as `openssl req -x509` makes it. Its dates were compared before that is seen.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(why)))
                if format!("{why:?}").contains("CaUsedAsEndEntity") && self.named.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            found => found,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Puts TLS on a connection to an https address.
#[derive(Debug)]
pub(crate) struct TrustingConnector(Arc<ClientConfig>);

impl TrustingConnector {
    /// Trusts these certificates instead of the system's.
    ///
    /// # Errors
    /// The words for certificates that are none.
    pub(crate) fn new(named: Vec<CertificateDer<'static>>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &named {
            roots
                .add(certificate.clone())
                .map_err(|e| format!("the file of authorities cannot be used: {e}; give certificates in PEM"))?;
        }
        let provider = Arc::new(default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let authorities = authorities
            .build()
            .map_err(|e| format!("the file of authorities cannot be used: {e}; give certificates in PEM"))?;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|e| e.to_string())?.dangerous();
        let builder = builder.with_custom_certificate_verifier(Arc::new(Trusted { authorities, named }));
        Ok(Self(Arc::new(builder.with_no_client_auth())))
    }
}

impl<In: Transport> Connector<In> for TrustingConnector {
    type Out = Either<In, Secured>;

    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let name = ServerName::try_from(host.trim_start_matches('[').trim_end_matches(']').to_owned());
        let name = name.map_err(|_| Error::Tls("the address has no name that a certificate could have"))?;
        let mut conn = ClientConnection::new(self.0.clone(), name)?;
        let mut sock = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        sock.set_timeout(details.timeout);
        conn.complete_io(&mut sock)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(Secured { buffers, stream: StreamOwned { conn, sock } })))
    }
}

/// A connection under TLS.
pub(crate) struct Secured {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl std::fmt::Debug for Secured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secured")
    }
}

impl Transport for Secured {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = &self.buffers.output()[..amount];
        Ok(self.stream.write_all(output)?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
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
