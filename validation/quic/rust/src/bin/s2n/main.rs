//! s2n-quic with its defaults (CUBIC), except for flow control. Option `unpaced`: without its pacer.

mod pacing;

use std::time::Instant;

use anyhow::{Context, Result};
use bytes::Bytes;
use pacing::Switched;
use quic_stacks::{NAME, PROTOCOL, Task, WINDOW, asked, came, options};
use s2n_quic::client::Connect;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::default::{Client as ClientTls, Server as ServerTls};
use s2n_quic::{Client, Connection, Server};

fn limits() -> Result<Limits> {
    let window = u64::from(WINDOW);
    Ok(Limits::new()
        .with_data_window(window)?
        .with_bidirectional_local_data_window(window)?
        .with_bidirectional_remote_data_window(window)?
        .with_max_send_buffer_size(WINDOW)?)
}

async fn answer(mut connection: Connection) -> Result<()> {
    while let Some(mut stream) = connection.accept_bidirectional_stream().await? {
        let mut request = Vec::new();
        while let Some(chunk) = stream.receive().await? {
            request.extend_from_slice(&chunk);
        }
        let bytes = asked(&request).context("a request has eight bytes")?;
        stream.send(Bytes::from(vec![0; usize::try_from(bytes)?])).await?;
        stream.close().await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let control = Switched { is_paced: options(["unpaced"])? == [false] };
    match quic_stacks::task()? {
        Task::Serve { at, certificate, key } => {
            let tls = ServerTls::builder()
                .with_certificate(certificate.as_path(), key.as_path())?
                .with_application_protocols([PROTOCOL].iter())?
                .build()?;
            let mut server = Server::builder()
                .with_tls(tls)?
                .with_limits(limits()?)?
                .with_congestion_controller(control)?
                .with_io(at)?
                .start()?;
            while let Some(connection) = server.accept().await {
                tokio::spawn(answer(connection));
            }
            Ok(())
        }
        Task::Fetch { from, bytes, authority } => {
            let tls = ClientTls::builder()
                .with_certificate(authority.as_path())?
                .with_application_protocols([PROTOCOL].iter())?
                .build()?;
            let client = Client::builder()
                .with_tls(tls)?
                .with_limits(limits()?)?
                .with_congestion_controller(control)?
                .with_io("0.0.0.0:0")?
                .start()?;
            let start = Instant::now();
            let mut connection = client.connect(Connect::new(from).with_server_name(NAME)).await?;
            let mut stream = connection.open_bidirectional_stream().await?;
            stream.send(Bytes::copy_from_slice(&bytes.to_be_bytes())).await?;
            stream.finish()?;
            let mut had = 0;
            while let Some(chunk) = stream.receive().await? {
                had += chunk.len() as u64;
            }
            came(start, had, bytes)
        }
    }
}
