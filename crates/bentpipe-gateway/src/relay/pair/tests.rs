//! Pairs over sockets of this machine, without a loop around them.

use std::net::{TcpListener, TcpStream as Host};

use bentpipe_engine::gateway::MIN_UNSENT;
use socket2::SockRef;

use super::*;

/// The gateway's end of a connection, and the host's.
fn connection() -> (TcpStream, Host) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let host = Host::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    let (gateway, _) = listener.accept().expect("it has connected");
    gateway.set_nonblocking(true).expect("a setting");
    (TcpStream::from_std(gateway), host)
}

/// A pair whose server has accepted, and both hosts.
fn open(pipe: &mut Pipe) -> (Pair, [Host; 2]) {
    let ((client, client_host), (server, server_host)) = (connection(), connection());
    let mut pair = Pair::new(client, server);
    pair.ends[SERVER].writable = true;
    assert!(pair.serve(pipe, LENGTH).has_connected);
    (pair, [client_host, server_host])
}

/// As after an event for both ends.
fn serve(pair: &mut Pair, pipe: &mut Pipe, limit: usize) -> Outcome {
    pair.ends.iter_mut().for_each(|end| (end.readable, end.writable) = (true, true));
    let outcome = pair.serve(pipe, limit);
    assert!(outcome.failed.is_none(), "{outcome:?}");
    outcome
}

/// All pairs share a pipe. What a dead receiver has not taken must not reach the next receiver.
#[test]
fn nothing_is_left_in_the_pipe() {
    let mut pipe = Pipe::new().expect("descriptors");
    let (mut pair, [mut client, server]) = open(&mut pipe);
    SockRef::from(&server).set_linger(Some(std::time::Duration::ZERO)).expect("a setting");
    drop(server);
    client.write_all(b"for the dead").expect("there is room");
    pair.ends[CLIENT].readable = true;
    assert!(pair.serve(&mut pipe, LENGTH).failed.is_some());
    let (mut pair, [mut client, mut server]) = open(&mut pipe);
    client.write_all(b"for the living").expect("there is room");
    drop(client);
    while !pair.ways[CLIENT].told {
        serve(&mut pair, &mut pipe, LENGTH);
    }
    let mut got = Vec::new();
    server.read_to_end(&mut got).expect("it has ended");
    assert_eq!(got, b"for the living");
}

/// A turn is limited, and says that there is more: no event comes for data that waits already.
#[test]
fn a_turn_says_that_there_is_more() {
    let mut pipe = Pipe::new().expect("descriptors");
    let (mut pair, [mut client, mut server]) = open(&mut pipe);
    let sent = vec![7; 20 * MIN];
    client.write_all(&sent).expect("there is room");
    pair.ends[CLIENT].readable = true;
    let mut turns = Vec::new();
    loop {
        let outcome = pair.serve(&mut pipe, MIN);
        turns.push(outcome.moved[CLIENT]);
        if !outcome.more {
            break;
        }
    }
    assert_eq!(turns.iter().sum::<u64>(), sent.len() as u64);
    assert!(turns.len() > 1 && turns.iter().all(|moved| *moved <= (ROUNDS * MIN) as u64), "{turns:?}");
    let mut got = vec![0; sent.len()];
    server.read_exact(&mut got).expect("it has arrived");
    assert_eq!(got, sent);
}

/// The client may still be receiving when the server's kernel has forgotten the connection and would answer a keepalive by a reset.
#[test]
fn a_server_that_has_finished_is_probed_late() {
    let mut pipe = Pipe::new().expect("descriptors");
    let (mut pair, [_client, server]) = open(&mut pipe);
    pair.ends.iter().for_each(|end| sockets::tune(&end.socket));
    let minutes = |pair: &Pair| {
        pair.ends.each_ref().map(|end| {
            let socket = SockRef::from(&end.socket);
            assert!(socket.keepalive().expect("a setting"));
            socket.tcp_keepalive_time().expect("a setting").as_secs() / 60
        })
    };
    assert_eq!(minutes(&pair), [2, 2]);
    drop(server);
    while !pair.ways[SERVER].told {
        serve(&mut pair, &mut pipe, LENGTH);
    }
    assert_eq!(minutes(&pair), [2, 10]);
    // A client that has finished may vanish while it waits for an answer.
    let (mut pair, [waiting, _server]) = open(&mut pipe);
    pair.ends.iter().for_each(|end| sockets::tune(&end.socket));
    waiting.shutdown(Shutdown::Write).expect("it is open");
    while !pair.ways[CLIENT].told {
        serve(&mut pair, &mut pipe, LENGTH);
    }
    assert_eq!(minutes(&pair), [2, 2]);
}

/// What a slow receiver does not take is limited, and arrives later, before the end.
#[test]
fn a_slow_receiver_costs_what_it_may() {
    for limit in [MIN_UNSENT, 5 * MIN_UNSENT] {
        let mut pipe = Pipe::new().expect("descriptors");
        let (mut pair, [mut client, mut server]) = open(&mut pipe);
        client.set_nonblocking(true).expect("a setting");
        let mut sent = 0;
        // Until nobody takes anything.
        loop {
            let wrote = client.write(&[7; 1 << 16]).unwrap_or(0);
            sent += wrote as u64;
            let outcome = serve(&mut pair, &mut pipe, limit);
            assert!(pair.held() <= limit as u64, "{}", pair.held());
            if wrote == 0 && outcome.moved[CLIENT] == 0 && !outcome.more && pair.held() > 0 {
                break;
            }
        }
        drop(client);
        let got = std::thread::spawn(move || {
            let mut got = Vec::new();
            server.read_to_end(&mut got).map(|_| got.len() as u64)
        });
        while !pair.ways[CLIENT].told {
            serve(&mut pair, &mut pipe, limit);
        }
        assert_eq!(got.join().expect("it reads").expect("no reset"), sent);
    }
}
