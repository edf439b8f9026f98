//! Connections to hosts on this machine.

use std::net::TcpStream as Host;

use socket2::SockRef;

use super::*;

fn pair() -> (Conn, Host) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let host = Host::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    let (socket, _) = listener.accept().expect("it has connected");
    socket.set_nonblocking(true).expect("a setting");
    (Conn::accepted(TcpStream::from_std(socket)), host)
}

fn serve(conn: &mut Conn, limit: usize) -> Outcome {
    conn.serve(&mut vec![0; sockets::READ], limit)
}

/// Reads until this much has been read in total.
fn read(conn: &mut Conn, limit: usize, total: u64) {
    let mut read = 0;
    while read < total {
        conn.readable = true;
        read += serve(conn, limit).read;
    }
    assert_eq!(read, total);
}

/// No more than the limit waits for the link, and more is read once half of it has gone.
#[test]
fn a_user_is_held_back() {
    let (mut conn, mut host) = pair();
    host.write_all(&vec![7; MAX_UNSENT + 1000]).expect("there is room");
    read(&mut conn, MAX_UNSENT, MAX_UNSENT as u64);
    let outcome = serve(&mut conn, MAX_UNSENT);
    assert_eq!((outcome.read, conn.unsent(), conn.wants_more()), (0, MAX_UNSENT as u64, false));
    conn.sent(MAX_UNSENT / 2);
    assert!(!conn.wants_more());
    conn.sent(1);
    assert!(conn.wants_more());
    read(&mut conn, MAX_UNSENT, 1000);
    conn.sent(conn.unsent() as usize);
    serve(&mut conn, MAX_UNSENT);
    assert!(!conn.wants_more(), "the user had no more");
    // What a short memory does not allow waits in the kernel.
    host.write_all(&[7; 100]).expect("there is room");
    read(&mut conn, 60, 60);
    assert_eq!((serve(&mut conn, 60).read, conn.unsent(), conn.wants_more()), (0, 60, true));
}

/// Memory for what a connection may always read is there from the start.
#[test]
fn memory_is_told_by_its_changes() {
    let (mut conn, mut host) = pair();
    let idle = (CONNECTION + MIN_UNSENT) as i64;
    assert_eq!((conn.memory_change(), conn.memory_change(), conn.memory()), (idle, 0, idle as u64));
    host.write_all(&[7; 100]).expect("there is room");
    read(&mut conn, MAX_UNSENT, 100);
    let change = conn.memory_change();
    assert!(change >= 0 && conn.memory() == (idle + change) as u64);
    conn.bring(&[7; MAX_UNSENT]);
    assert!(conn.memory_change() >= MAX_UNSENT as i64);
}

/// Long data is written before the turn ends, unless the user does not read.
#[test]
fn a_user_that_does_not_read_is_not_due() {
    let (mut conn, _host) = pair();
    conn.bring(&[7; AT_ONCE - 1]);
    assert!(!conn.is_due());
    conn.bring(&[7]);
    assert!(conn.is_due());
    let mut taken = 0;
    while conn.waiting() == 0 || conn.writable {
        conn.bring(&[7; AT_ONCE]);
        taken += serve(&mut conn, 0).taken;
    }
    conn.bring(&[7; AT_ONCE]);
    assert!(taken > 0 && !conn.is_due());
}

/// The end of the stream comes after the data, once, and the other direction goes on.
#[test]
fn each_direction_ends_once() {
    let (mut conn, mut host) = pair();
    conn.bring(&[7; 100]);
    conn.writable = false;
    conn.end();
    serve(&mut conn, MAX_UNSENT);
    assert!(!conn.is_flushed());
    conn.writable = true;
    assert_eq!(serve(&mut conn, MAX_UNSENT).taken, 100);
    assert!(conn.is_flushed());
    let mut got = Vec::new();
    host.read_to_end(&mut got).expect("no reset");
    assert_eq!(got, [7; 100]);
    host.write_all(&[7; 100]).expect("it is open");
    read(&mut conn, MAX_UNSENT, 100);
    drop(host);
    let mut outcome = Outcome::default();
    while !outcome.ended {
        conn.readable = true;
        outcome = serve(&mut conn, MAX_UNSENT);
    }
    // A socket that has ended in both directions cannot be ended again.
    for _ in 0..3 {
        let outcome = serve(&mut conn, MAX_UNSENT);
        assert!(outcome.failed.is_none() && !outcome.ended, "{outcome:?}");
    }
}

/// A reset after the end of the user's data: in neither direction does anything move that would show it.
#[test]
fn a_reset_after_the_end_is_noticed() {
    let (mut conn, host) = pair();
    let (mut poll, mut events) = (mio::Poll::new().expect("a poll"), mio::Events::with_capacity(4));
    conn.register(poll.registry(), Token(0)).expect("it is registered once");
    host.shutdown(Shutdown::Write).expect("it is open");
    let mut turn = |conn: &mut Conn| {
        poll.poll(&mut events, Some(std::time::Duration::from_secs(10))).expect("a wait");
        let outcomes = events.iter().map(|ready| {
            conn.note(ready);
            serve(conn, MAX_UNSENT)
        });
        outcomes.collect::<Vec<_>>()
    };
    while !conn.user_ended {
        assert!(turn(&mut conn).iter().all(|outcome| outcome.failed.is_none()));
    }
    SockRef::from(&host).set_linger(Some(std::time::Duration::ZERO)).expect("a setting");
    drop(host);
    assert!(turn(&mut conn).iter().any(|outcome| outcome.failed.is_some()));
}

#[test]
fn sockets_are_tuned() {
    let (conn, _host) = pair();
    let socket = SockRef::from(&conn.socket);
    let is_set = (socket.tcp_nodelay(), socket.keepalive(), socket.out_of_band_inline(), socket.linger());
    let (Ok(true), Ok(true), Ok(true), Ok(Some(std::time::Duration::ZERO))) = is_set else { panic!("{is_set:?}") };
}
