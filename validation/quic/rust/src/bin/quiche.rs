//! quiche with its defaults (CUBIC), except for flow control and path MTU discovery, over a blocking socket. The server
//! handles one connection at a time. Options: `bbr2`, its other congestion control, and `unpaced`. quiche paces only with
//! `bbr2`: with CUBIC each packet's send time is the present.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use quic_stacks::{NAME, PROTOCOL, Task, WINDOW, asked, came, options};
use quiche::{Config, CongestionControlAlgorithm, Connection, ConnectionId, RecvInfo};

const STREAM: u64 = 0;
/// Max datagrams that wait for their send time, so that congestion control and not this queue holds the data.
const WAITING: usize = 64;

fn config() -> Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[PROTOCOL])?;
    config.set_max_idle_timeout(30_000);
    let window = u64::from(WINDOW);
    config.set_initial_max_data(window);
    config.set_initial_max_stream_data_bidi_local(window);
    config.set_initial_max_stream_data_bidi_remote(window);
    config.set_max_connection_window(window);
    config.set_max_stream_window(window);
    config.set_initial_max_streams_bidi(1);
    config.set_max_recv_udp_payload_size(1452);
    config.set_max_send_udp_payload_size(1452);
    // Without it quiche sends 1452 bytes from the start, whatever the path's MTU is.
    config.discover_pmtu(true);
    let [bbr2, unpaced] = options(["bbr2", "unpaced"])?;
    if bbr2 {
        config.set_cc_algorithm(CongestionControlAlgorithm::Bbr2Gcongestion);
    }
    config.enable_pacing(!unpaced);
    Ok(config)
}

/// Opens a socket for quiche. The host sets DF and does not fragment probes of the path MTU.
fn socket(at: SocketAddr) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    let (value, length) = (libc::IP_PMTUDISC_PROBE, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the descriptor is open, and the option's value is an int that lives until the call returns.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, (&raw const value).cast(), length)
    };
    ensure!(set == 0, std::io::Error::last_os_error());
    Ok(socket)
}

/// Carries datagrams between the socket and the connection until the connection is closed. `work` uses the streams. It is
/// called whenever data may have arrived.
fn drive(
    socket: &UdpSocket,
    connection: &mut Connection,
    mut work: impl FnMut(&mut Connection) -> Result<()>,
) -> Result<()> {
    let local = socket.local_addr()?;
    let mut datagram = [0; 65_536];
    // Keys: the send time from quiche's pacing, then the order of creation.
    let mut waiting: BTreeMap<(Instant, u64), (Vec<u8>, SocketAddr)> = BTreeMap::new();
    let mut made = 0;
    while !connection.is_closed() {
        if !connection.is_draining() {
            work(connection)?;
        }
        while waiting.len() < WAITING {
            match connection.send(&mut datagram) {
                Ok((length, info)) => {
                    made += 1;
                    waiting.insert((info.at, made), (datagram[..length].to_vec(), info.to));
                }
                Err(quiche::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let now = Instant::now();
        while let Some(first) = waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            let (datagram, to) = first.remove();
            socket.send_to(&datagram, to)?;
        }
        let next = waiting.keys().next().map(|(at, _)| at.saturating_duration_since(now));
        let timeout = next.into_iter().chain(connection.timeout()).min();
        socket.set_read_timeout(timeout.map(|timeout| timeout.max(Duration::from_micros(50))))?;
        match socket.recv_from(&mut datagram) {
            // A datagram of an earlier connection is an error, which is ignored.
            Ok((length, from)) => drop(connection.recv(&mut datagram[..length], RecvInfo { from, to: local })),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if connection.timeout_instant().is_some_and(|at| at <= Instant::now()) {
                    connection.on_timeout();
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Answers one request with zeros.
fn answer() -> impl FnMut(&mut Connection) -> Result<()> {
    let mut request = Vec::new();
    let mut left = None;
    let zeros = vec![0; 1 << 16];
    move |connection| {
        let mut chunk = [0; 64];
        while left.is_none() && connection.stream_readable(STREAM) {
            let (length, end) = connection.stream_recv(STREAM, &mut chunk)?;
            request.extend_from_slice(&chunk[..length]);
            if end {
                left = Some(asked(&request).context("a request has eight bytes")?);
            }
        }
        while let Some(rest) = left.filter(|&left| left > 0) {
            let chunk = &zeros[..zeros.len().min(usize::try_from(rest)?)];
            match connection.stream_send(STREAM, chunk, chunk.len() as u64 == rest) {
                Ok(sent) => left = Some(rest - sent as u64),
                Err(quiche::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn serve(at: SocketAddr, mut config: Config) -> Result<()> {
    let socket = socket(at)?;
    let mut datagram = [0; 65_536];
    let mut id = 0_u64;
    loop {
        socket.set_read_timeout(None)?;
        let (length, from) = socket.recv_from(&mut datagram)?;
        let header = quiche::Header::from_slice(&mut datagram[..length], quiche::MAX_CONN_ID_LEN);
        if !header.is_ok_and(|header| header.ty == quiche::Type::Initial) {
            continue; // A late datagram of the previous connection.
        }
        id += 1;
        let mut connection = quiche::accept(&ConnectionId::from_ref(&id.to_be_bytes()), None, at, from, &mut config)?;
        connection.recv(&mut datagram[..length], RecvInfo { from, to: at })?;
        drive(&socket, &mut connection, answer())?;
    }
}

fn fetch(from: SocketAddr, mut config: Config, bytes: u64) -> Result<()> {
    let finder = UdpSocket::bind("0.0.0.0:0")?;
    finder.connect(from)?;
    let local = finder.local_addr()?;
    drop(finder);
    let socket = socket(local)?; // Not connected; bound to the address that the kernel chose for the path to the server.
    let start = Instant::now();
    let mut connection = quiche::connect(Some(NAME), &ConnectionId::from_ref(&[7; 16]), local, from, &mut config)?;
    let (mut requested, mut had, mut whole) = (false, 0, false);
    let mut chunk = vec![0; 1 << 16];
    drive(&socket, &mut connection, |connection| {
        if connection.is_established() && !requested {
            connection.stream_send(STREAM, &bytes.to_be_bytes(), true)?;
            requested = true;
        }
        while connection.stream_readable(STREAM) {
            let (length, end) = connection.stream_recv(STREAM, &mut chunk)?;
            had += length as u64;
            if end {
                whole = true;
                came(start, had, bytes)?;
                connection.close(true, 0, b"")?;
            }
        }
        Ok(())
    })?;
    ensure!(whole, "the connection ended after {had} of {bytes} bytes");
    Ok(())
}

fn main() -> Result<()> {
    let mut config = config()?;
    match quic_stacks::task()? {
        Task::Serve { at, certificate, key } => {
            config.load_cert_chain_from_pem_file(certificate.to_str().context("CERTIFICATE")?)?;
            config.load_priv_key_from_pem_file(key.to_str().context("KEY")?)?;
            serve(at, config)
        }
        Task::Fetch { from, bytes, authority } => {
            config.load_verify_locations_from_file(authority.to_str().context("AUTHORITY")?)?;
            config.verify_peer(true);
            fetch(from, config, bytes)
        }
    }
}
