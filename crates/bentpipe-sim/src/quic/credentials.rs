//! TLS 1.3 for simulated connections: one fixed certificate, a clock that stands still, and tickets for 0-RTT.
//!
//! The handshake is real and its keys are random, but no length depends on them: the key exchange is X25519, the
//! signature is Ed25519, and tickets have a constant length. A test compares runs.
//!
//! The certificate was made once, with a key that protects nothing:
//!
//! ```text
//! openssl genpkey -algorithm ed25519 -outform DER -out key.der
//! openssl req -x509 -key key.der -days 36500 -subj /CN=bentpipe -addext subjectAltName=DNS:bentpipe \
//!     -addext basicConstraints=critical,CA:FALSE -outform DER -out certificate.der
//! ```

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::crypto::{ClientConfig, ServerConfig};
use quinn_proto::rustls::client::{Resumption, WebPkiServerVerifier};
use quinn_proto::rustls::crypto::CryptoProvider;
use quinn_proto::rustls::crypto::ring::{default_provider, kx_group};
use quinn_proto::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime};
use quinn_proto::rustls::time_provider::TimeProvider;
use quinn_proto::rustls::{self, RootCertStore};

/// The server's name in its certificate.
pub(super) const SERVER_NAME: &str = "bentpipe";

const CERTIFICATE: &[u8] = include_bytes!("credentials/certificate.der");
const KEY: &[u8] = include_bytes!("credentials/key.der");

/// The time at which all handshakes take place (2027-01-01), used for the certificate and the age of tickets.
#[derive(Debug)]
struct Still;

impl TimeProvider for Still {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(1_798_761_600)))
    }
}

/// The settings of the two ends of a connection, and of earlier connections between them.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) client: Arc<dyn ClientConfig>,
    pub(super) server: Arc<dyn ServerConfig>,
}

impl Credentials {
    /// `tickets`: the client keeps the server's tickets and uses them.
    pub(super) fn new(tickets: bool) -> Self {
        const SOUND: &str = "the certificate was made for this";
        // Only X25519 is offered: a key share has 32 bytes.
        let provider = Arc::new(CryptoProvider { kx_groups: vec![kx_group::X25519], ..default_provider() });
        let versions = [&rustls::version::TLS13];

        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(CERTIFICATE)).expect(SOUND);
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let mut client = rustls::ClientConfig::builder_with_details(provider.clone(), Arc::new(Still))
            .with_protocol_versions(&versions)
            .expect(SOUND)
            .with_webpki_verifier(verifier.build().expect(SOUND))
            .with_no_client_auth();
        client.resumption = if tickets { Resumption::in_memory_sessions(8) } else { Resumption::disabled() };
        client.enable_early_data = tickets;

        let key = PrivatePkcs8KeyDer::from(KEY).into();
        let mut server = rustls::ServerConfig::builder_with_details(provider, Arc::new(Still))
            .with_protocol_versions(&versions)
            .expect(SOUND)
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
            .expect(SOUND);
        // Either all early data or none: QUIC allows no other values (RFC 9001 section 4.6.1).
        server.max_early_data_size = u32::MAX;
        Credentials {
            client: Arc::new(QuicClientConfig::try_from(client).expect(SOUND)),
            server: Arc::new(QuicServerConfig::try_from(server).expect(SOUND)),
        }
    }
}
