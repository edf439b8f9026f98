//! The Prometheus endpoint: `GET /metrics` over HTTP/1.1, in separate threads.
//!
//! A malformed, slow or frequent request affects only other scrapers: a request head has at most [`MAX_HEAD`] bytes, a
//! request takes at most [`PATIENCE`], and there are at most [`MAX_SCRAPERS`] at a time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::ports;

/// Maximum length of a request head in bytes; Prometheus sends some 300.
const MAX_HEAD: usize = 8 << 10;
const MAX_HEADERS: usize = 64;
/// Maximum time from the connection to the end of the answer; Prometheus waits 10 s.
const PATIENCE: Duration = Duration::from_secs(2);
const MAX_SCRAPERS: usize = 8;
/// The pause after the system has refused a connection, so that the thread does not spin.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// A socket that listens but does not answer yet.
#[derive(Debug)]
pub struct Scrape {
    listener: TcpListener,
}

impl Scrape {
    /// Listens at `at`.
    ///
    /// # Errors
    /// Fails if the address cannot be bound, because it is taken or does not belong to this machine.
    pub fn bind(at: SocketAddr) -> io::Result<Scrape> {
        let bound = TcpListener::bind(at);
        let listener = bound.map_err(|error| ports::explained(ports::Kind::Tcp, at.port(), error))?;
        Ok(Scrape { listener })
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// Fails if the kernel does not return the socket's address.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers with `page` for as long as the process lives.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn serve(self, page: impl Fn() -> String + Send + Sync + 'static) -> io::Result<()> {
        let (page, busy) = (Arc::new(page), Arc::new(AtomicUsize::new(0)));
        std::thread::Builder::new().name("metrics".into()).spawn(move || {
            for stream in self.listener.incoming() {
                let Ok(stream) = stream else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                let slot = Slot::take(&busy);
                let (Some(slot), page) = (slot, page.clone()) else { continue };
                // If no thread can be started, the connection is closed.
                let _ = std::thread::Builder::new().name("scraper".into()).spawn(move || {
                    let _slot = slot;
                    let _ = answer(stream, &*page);
                });
            }
        })?;
        Ok(())
    }
}

/// A place among the scrapers.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(busy: &Arc<AtomicUsize>) -> Option<Slot> {
        let slot = Slot(busy.clone());
        (busy.fetch_add(1, Ordering::SeqCst) < MAX_SCRAPERS).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The remaining time of a scraper, as the socket's timeout.
fn left(until: Instant) -> io::Result<Option<Duration>> {
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(Some(left)),
    }
}

fn answer(mut stream: TcpStream, page: &dyn Fn() -> String) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let asked = loop {
        match judge(&head) {
            Asked::Incomplete if head.len() < MAX_HEAD => {}
            asked => break asked,
        }
        stream.set_read_timeout(left(until)?)?;
        let mut buffer = [0; 1024];
        match stream.read(&mut buffer)? {
            0 => break Asked::Bad,
            count => head.extend_from_slice(&buffer[..count]),
        }
    };
    let (status, body) = match asked {
        Asked::Page { .. } => ("200 OK", page()),
        Asked::NotFound => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        Asked::Method => ("405 Method Not Allowed", "only GET and HEAD\n".to_owned()),
        Asked::Bad => ("400 Bad Request", "this is not an HTTP/1.1 request\n".to_owned()),
        Asked::Incomplete => ("431 Request Header Fields Too Large", "8 KiB at most\n".to_owned()),
    };
    // The format and its version: https://prometheus.io/docs/instrumenting/exposition_formats/
    let kind =
        if matches!(asked, Asked::Page { .. }) { "text/plain; version=0.0.4; charset=utf-8" } else { "text/plain" };
    let allow = if asked == Asked::Method { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    if asked != (Asked::Page { body: false }) {
        text += &body;
    }
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(left(until)?)?;
        match stream.write(rest)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => rest = &rest[count..],
        }
    }
    // If it were closed with bytes unread, the socket would send a reset, and the answer might not arrive (RFC 9112
    // §9.6).
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut buffer = [0; 1024];
    for _ in 0..MAX_HEAD / buffer.len() {
        stream.set_read_timeout(left(until)?)?;
        if stream.read(&mut buffer)? == 0 {
            break;
        }
    }
    Ok(())
}

/// The request in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Incomplete,
    Bad,
    Method,
    NotFound,
    Page { body: bool },
}

fn judge(head: &[u8]) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return Asked::Incomplete,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Asked::Bad,
    }
    let path = request.path.unwrap_or_default().split('?').next();
    match (request.method, path) {
        (Some("GET"), Some("/metrics")) => Asked::Page { body: true },
        (Some("HEAD"), Some("/metrics")) => Asked::Page { body: false },
        (Some("GET" | "HEAD"), _) => Asked::NotFound,
        _ => Asked::Method,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> SocketAddr {
        let scrape = Scrape::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let at = scrape.local().expect("it is bound");
        scrape.serve(|| "up 1\n".to_owned()).expect("a thread");
        at
    }

    fn ask(at: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("not zero");
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it is closed in order");
        String::from_utf8(answer).expect("text")
    }

    #[test]
    fn questions_and_answers() {
        let at = served();
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 5\r\n\
                    Connection: close\r\n\r\n";
        assert_eq!(ask(at, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), format!("{page}up 1\n"));
        assert_eq!(ask(at, b"GET /metrics?a=b HTTP/1.0\r\n\r\n"), format!("{page}up 1\n"));
        assert_eq!(ask(at, b"HEAD /metrics HTTP/1.1\r\n\r\n"), page);
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x16\x03\x01\x00garbage\r\n\r\n", "400"),
            (b"GET /metrics\r\n\r\n", "400"),
        ] {
            assert!(ask(at, request).starts_with(&format!("HTTP/1.1 {status} ")), "{}", request.escape_ascii());
        }
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(MAX_HEAD));
        assert!(ask(at, long.as_bytes()).starts_with("HTTP/1.1 431 "));
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1));
        assert!(ask(at, many.as_bytes()).starts_with("HTTP/1.1 400 "));
    }

    /// Silent scrapers lose their places. Until then, further ones are turned away at once.
    #[test]
    fn the_slow_are_given_up() {
        let at = served();
        let start = Instant::now();
        let slow: Vec<_> = (0..MAX_SCRAPERS)
            .map(|_| {
                let mut stream = TcpStream::connect(at).expect("it listens");
                stream.write_all(b"GET /met").expect("it is open");
                stream
            })
            .collect();
        let mut ninth = TcpStream::connect(at).expect("it listens");
        // It was closed without an answer.
        assert_eq!(ninth.read(&mut [0]).unwrap_or(0), 0);
        assert!(start.elapsed() < PATIENCE);
        for mut stream in slow {
            assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
        }
        // PATIENCE for the slow ones; the rest allows for a busy machine.
        assert!(start.elapsed() < PATIENCE + Duration::from_secs(8));
        assert!(ask(at, b"GET /metrics HTTP/1.1\r\n\r\n").ends_with("up 1\n"));
    }
}
