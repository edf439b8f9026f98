//! The traffic whose cost is measured.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::{Row, SERVER, SPAN, cpu_of_thread, hosts};

/// Gbit/s from client to server by the clock, and the bytes between two looks.
pub(super) fn transfer(row: &Row, to: SocketAddr, received: &AtomicU64, mut look: impl FnMut(bool)) -> (f64, u64) {
    let mut stream = hosts::connect(&row.client, to);
    let over = Arc::new(AtomicBool::new(false));
    let ends = over.clone();
    let sender = std::thread::spawn(move || {
        let block = vec![7; 1 << 20];
        while !ends.load(Ordering::Relaxed) && stream.write_all(&block).is_ok() {}
        let _ = stream.shutdown(Shutdown::Both);
    });
    let measured = measure(received, &mut look);
    over.store(true, Ordering::Relaxed);
    sender.join().expect("it only writes");
    measured
}

/// The same from server to client.
pub(super) fn download(row: &Row, mut look: impl FnMut(bool)) -> (f64, u64) {
    let at: SocketAddr = format!("{SERVER}:7003").parse().expect("an address");
    let listener = row.server.inside(move || TcpListener::bind(at).expect("it is free"));
    let sender = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client comes");
        let block = vec![7; 1 << 20];
        while stream.write_all(&block).is_ok() {}
    });
    let stream = hosts::connect(&row.client, at);
    let received = Arc::new(AtomicU64::new(0));
    let (add, mut reader) = (received.clone(), stream.try_clone().expect("a descriptor"));
    let taker = std::thread::spawn(move || take(&mut reader, &add));
    let measured = measure(&received, &mut look);
    let _ = stream.shutdown(Shutdown::Both);
    drop(stream);
    taker.join().expect("it only reads");
    sender.join().expect("it only writes");
    measured
}

fn measure(received: &AtomicU64, look: &mut impl FnMut(bool)) -> (f64, u64) {
    std::thread::sleep(SPAN / 10);
    look(false);
    let (start, from) = (Instant::now(), received.load(Ordering::Relaxed));
    std::thread::sleep(SPAN);
    let bytes = received.load(Ordering::Relaxed) - from;
    let seconds = start.elapsed().as_secs_f64();
    look(true);
    (bytes as f64 * 8.0 / seconds / 1e9, bytes)
}

/// Reads to the end and counts.
fn take(stream: &mut TcpStream, count: &AtomicU64) {
    let mut block = vec![0; 1 << 20];
    while let Ok(got @ 1..) = stream.read(&mut block) {
        count.fetch_add(got as u64, Ordering::Relaxed);
    }
}

/// A server that takes what comes and counts it.
pub(super) fn sink(row: &Row) -> (SocketAddr, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let add = count.clone();
    let at: SocketAddr = format!("{SERVER}:7000").parse().expect("an address");
    let listener = row.server.inside(move || TcpListener::bind(at).expect("it is free"));
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let add = add.clone();
            std::thread::spawn(move || take(&mut stream, &add));
        }
    });
    (at, count)
}

/// A relay of one thread on the near box, with reads and writes and nothing else; its CPU time, ns.
pub(super) fn relay(row: &Row, to: SocketAddr) -> (SocketAddr, Arc<AtomicU64>) {
    let at: SocketAddr = ([10, 1, 0, 1], 7001).into();
    let cpu = Arc::new(AtomicU64::new(0));
    let show = cpu.clone();
    let listener = row.boxes[0].inside(move || TcpListener::bind(at).expect("it is free"));
    row.boxes[0].spawn(move || {
        let Ok((mut from, _)) = listener.accept() else { return };
        let mut onward = TcpStream::connect(to).expect("the server listens");
        let mut block = vec![0; 256 << 10];
        while let Ok(got @ 1..) = from.read(&mut block) {
            if onward.write_all(&block[..got]).is_err() {
                break;
            }
            show.store(cpu_of_thread(), Ordering::Relaxed);
        }
    });
    (at, cpu)
}

/// Connections that carry a byte there and one back, one after the other on a few threads; per second by the clock.
pub(super) fn connections(row: &Row, count: usize) -> f64 {
    const THREADS: usize = 32;
    let at: SocketAddr = format!("{SERVER}:7002").parse().expect("an address");
    let listener = row.server.inside(move || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("the kernel's");
        socket.bind(&at.into()).expect("it is free");
        socket.listen(4096).expect("it is bound");
        TcpListener::from(socket)
    });
    let server = std::thread::spawn(move || {
        for _ in 0..count / THREADS * THREADS {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let _ = stream.read_exact(&mut [0]).and_then(|()| stream.write_all(&[1]));
        }
    });
    let start = Instant::now();
    let clients: Vec<_> = (0..THREADS)
        .map(|_| {
            row.client.spawn(move || {
                for _ in 0..count / THREADS {
                    let mut stream = TcpStream::connect(at).expect("it connects");
                    stream.write_all(&[1]).and_then(|()| stream.read_exact(&mut [0])).expect("an answer");
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().expect("it is served"));
    let rate = count as f64 / start.elapsed().as_secs_f64();
    server.join().expect("it ends");
    rate
}
