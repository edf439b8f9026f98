//! A link that restarts while hosts open connections: no stream of the old link is mistaken for one of the new link.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bentpipe_engine::link::LinkConfig;
use bentpipe_engine::units::{self, Rate};

use super::pair::{Line, NAMES, Running, until};

/// Connections that have sent these requests, or parts of them.
fn asking(line: &Line, server: SocketAddr, requests: &[&'static [u8]]) -> Vec<TcpStream> {
    let made = requests.iter().map(|request| {
        let mut stream = line.connect(server).expect("the kernel accepts");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("not zero");
        stream.write_all(request).expect("it is open");
        stream
    });
    made.collect()
}

/// The far box restarts. Its first datagram under the new keys arrives with some connections while the near box is busy. Each of these
/// connections gets the right answer or a reset, and each later one gets an answer.
#[test]
fn connections_that_come_with_a_new_link_are_not_mixed_up() {
    let line = Line::new("20 Mbit/s");
    NAMES.iter().for_each(|name| line.edit(name, "20 ms", "600 ms"));
    let link = || LinkConfig::clean(Rate::from_bits_per_second(20_000_000), units::Duration::from_millis(300));
    let _sky = line.over_sky([link(), link()]);
    let server = line.serve(80, |mut stream| {
        let mut request = [0; 4];
        while stream.read_exact(&mut request).is_ok() && stream.write_all(&request.repeat(200)).is_ok() {}
    });
    let [near, mut far] = NAMES.map(|name| line.start(name, 1024));
    line.wait_until_up(&NAMES, true);
    for _ in 0..3 {
        far.0.kill().expect("it runs");
        far.0.wait().expect("it ends");
        far = line.start("far", 1024);
        until("it calls", || line.status("far").is_some());
        // The request has arrived and is answered. The rest of the answer is in flight and arrives 900 ms after the request.
        std::thread::sleep(Duration::from_millis(600));
        near.signal("STOP");
        let mut between = asking(&line, server, &[b"old1", b"old2", b"ol", b"ol", b"", b""]);
        std::thread::sleep(Duration::from_millis(700));
        near.signal("CONT");
        line.wait_until_up(&NAMES, true);
        let requests: [&[u8]; 6] = [b"new1", b"new2", b"new3", b"new4", b"new5", b"new6"];
        let after = asking(&line, server, &requests);
        // The kernel reports a reset once: to the write if it has arrived by then, otherwise to the read.
        let rests = [&b""[..], b"", b"d3", b"d4", b"old5", b"old6"];
        let written: Vec<_> = between.iter_mut().zip(rests).map(|(stream, rest)| stream.write_all(rest)).collect();
        let olds: [&[u8]; 6] = [b"old1", b"old2", b"old3", b"old4", b"old5", b"old6"];
        let old = between.into_iter().zip(olds).zip(written);
        let new = after.into_iter().zip(requests).map(|one| (one, Ok(())));
        for ((mut stream, request), written) in old.chain(new) {
            let mut answer = [0; 800];
            let read = written.and_then(|()| stream.read_exact(&mut answer));
            let asked = request.escape_ascii();
            match read.map_err(|error| error.kind()) {
                Ok(()) => assert!(answer == *request.repeat(200), "{asked} got {}", answer[..4].escape_ascii()),
                Err(kind) => assert!(kind == ErrorKind::ConnectionReset && request[0] == b'o', "{asked}: {kind}"),
            }
        }
    }
    let _: [Running; 2] = [near, far];
}
