//! quinn with its defaults (CUBIC), except for flow control.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use quic_stacks::{NAME, PROTOCOL, Task, WINDOW, asked, came, options};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(WINDOW.into()).receive_window(WINDOW.into()).send_window(WINDOW.into());
    Arc::new(transport)
}

async fn answer(incoming: quinn::Incoming) -> Result<()> {
    let connection = incoming.await?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let bytes = asked(&receive.read_to_end(8).await?).context("a request has eight bytes")?;
        send.write_all(&vec![0; usize::try_from(bytes)?]).await?;
        send.finish()?;
    }
    Ok(())
}

async fn fetch(from: SocketAddr, config: ClientConfig, bytes: u64) -> Result<()> {
    let start = Instant::now();
    let mut endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(from, NAME)?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut had = 0;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        had += chunk.bytes.len() as u64;
    }
    came(start, had, bytes)?;
    connection.close(0u8.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    options([])?;
    match quic_stacks::task()? {
        Task::Serve { at, certificate, key } => {
            let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
            let mut tls = rustls::ServerConfig::builder()
                .with_no_client_auth()
                .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
            tls.alpn_protocols = vec![PROTOCOL.to_vec()];
            let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
            config.transport_config(transport());
            let endpoint = Endpoint::server(config, at)?;
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(answer(incoming));
            }
            Ok(())
        }
        Task::Fetch { from, bytes, authority } => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(authority)?)?;
            let mut tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
            tls.alpn_protocols = vec![PROTOCOL.to_vec()];
            let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
            config.transport_config(transport());
            fetch(from, config, bytes).await
        }
    }
}
