//! A TCP server of the engine behind a TUN device: it answers one HTTP request from the host, then ends.
//!
//! As root, or in a network namespace of your own:
//!
//! ```text
//! cargo build -p bentpipe-io --example tun_hello   # here, because the namespace reaches no network
//! unshare --user --map-root-user --net
//! ip link set lo up
//! target/debug/examples/tun_hello &
//! curl http://10.77.0.2:8080/                      # once it says `listening`
//! ```
//!
//! The host's kernel is an ordinary remote peer: it routes 10.77.0.0/24 to the device, and the loop below receives all
//! packets.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::units::Duration;
use bentpipe_engine::{Context, Step};
use bentpipe_io::{Clock, Endpoint, Peer, Tun, Waiter};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2)), 8080);
const ANSWER: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Length: 20\r\n\r\nhello from bentpipe\n";

fn main() -> Result<(), Box<dyn Error>> {
    let tun = Tun::with_addresses("bentpipe0", &[(HOST, 24)], 1500)?;
    let clock = Clock::start();
    let mut waiter = Waiter::new(clock)?;
    waiter.watch(&tun, 0)?;
    // We close first, so TIME-WAIT would be on our side. With a single connection, it protects nothing.
    let config = TcpConfig { time_wait: Duration::ZERO, ..TcpConfig::default() };
    let mut server = Endpoint::open(&mut Context::silent(clock.now()), config, SERVER, Peer::Accept, 1 << 16);
    eprintln!("listening at {SERVER}");
    let (mut packet, mut request) = ([0; 1500], Vec::new());
    let (mut ready, mut has_answered) = (Vec::new(), false);
    loop {
        // One time for everything in a turn.
        let mut cx = Context::silent(clock.now());
        while let Some(length) = tun.read(&mut packet)? {
            // The kernel also sends packets that are not for us, such as router solicitations.
            if let Err(error) = server.receive(&mut cx, &packet[..length]) {
                eprintln!("{length} bytes that are not a packet for us: {error}");
            }
        }
        let mut bytes = [0; 1500];
        let length = server.read(&mut cx, &mut bytes);
        request.extend_from_slice(&bytes[..length]);
        if !has_answered && request.windows(4).any(|end| end == b"\r\n\r\n") {
            has_answered = true;
            assert_eq!(server.write(&mut cx, ANSWER)?, ANSWER.len(), "the send buffer is empty");
            server.close(&mut cx);
        }
        // Sends packets until the connection waits; then sleeps until a packet arrives or the timer expires.
        let timer = loop {
            match server.poll(&mut cx, &mut packet)? {
                Step::Do(length) => _ = tun.write(&packet[..length])?,
                Step::Wait(until) => break until,
            }
        };
        if let Some(outcome) = server.outcome() {
            eprintln!("{}", String::from_utf8_lossy(&request));
            return Ok(outcome?);
        }
        waiter.wait(timer, &mut ready)?;
    }
}
