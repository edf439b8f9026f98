//! The Prometheus endpoint: `GET /metrics` over HTTP/1.1, in separate threads.
//!
//! A malformed, slow or frequent request affects only other scrapers: a request head has at most [`MAX_HEAD`] bytes, a
//! request takes at most [`PATIENCE`], and there are at most [`MAX_SCRAPERS`] at a time.
//!
//! A further scraper takes the place of another one: the oldest of the address with the most scrapers. So nobody who holds
//! connections open keeps Prometheus out. A scraper has its place for [`MIN_TIME`] at least. That is enough for an
//! answer, even while others of its address connect again and again. One that loses its place still has its answer if
//! its request has arrived and the answer takes less than [`GRACE`].

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bentpipe_io::Clock;

use crate::half_open::HalfOpen;
use crate::ports;

/// Maximum length of a request head in bytes; Prometheus sends some 300.
const MAX_HEAD: usize = 8 << 10;
const MAX_HEADERS: usize = 64;
/// Maximum time from the connection to the whole request, and from then on, without the time to make the page, to the end of the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a page for which the answer may take a second more: that of a hub with 65 536 peers has 400 MB.
const PER_SECOND: usize = 50 << 20;
const MAX_SCRAPERS: usize = 8;
/// Minimum time for a scraper. A page takes some milliseconds, but on a busy machine the scraper may send its request
/// late, and its thread may run late. If a full queue of 128 connections sends nothing, the last waits for 2.4 s.
const MIN_TIME: Duration = Duration::from_millis(150);
/// How long a scraper that has lost its place may still write. If all of a full queue take it, the last waits for 6.4 s.
const GRACE: Duration = Duration::from_millis(if cfg!(test) { 2000 } else { 50 });
/// How long a page is used again, unless making it took longer: at most half of a processor's time, which the gateway's loop may need.
const FRESH: Duration = Duration::from_millis(100);
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
        let (page, scrapers) = (Arc::new(Page { make: page, last: Mutex::new(None) }), Scrapers::new());
        std::thread::Builder::new().name("metrics".into()).spawn(move || {
            loop {
                let Ok((stream, from)) = self.listener.accept() else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                let page = page.clone();
                if let Some(evicted) = scrapers.begin(from.ip(), stream, move |stream| answer(stream, || page.get())) {
                    std::thread::sleep(MIN_TIME.saturating_sub(evicted.begun.elapsed()));
                    evicted.end();
                }
            }
        })?;
        Ok(())
    }
}

/// The page, made at most once per [`FRESH`] and by one thread at a time.
struct Page<F> {
    make: F,
    last: Mutex<Option<Made>>,
}

struct Made {
    page: Arc<str>,
    at: Instant,
    took: Duration,
}

impl<F: Fn() -> String> Page<F> {
    fn get(&self) -> Arc<str> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(made) if made.at.elapsed() < FRESH.max(made.took) => made.page.clone(),
            _ => {
                // The old page goes first: with many peers there is not always room for two.
                *last = None;
                let begun = Instant::now();
                let page: Arc<str> = (self.make)().into();
                *last = Some(Made { page: page.clone(), at: Instant::now(), took: begun.elapsed() });
                page
            }
        }
    }
}

/// A scraper: its connection and the thread that answers it.
struct Scraper {
    stream: Arc<TcpStream>,
    thread: JoinHandle<()>,
    begun: Instant,
}

impl Scraper {
    /// Ends the connection and waits for the thread. It can read what has arrived, and no more, and has some time to
    /// answer: on a busy machine it may not have run since the request came.
    fn end(self) {
        let since = Instant::now();
        let _ = self.stream.shutdown(Shutdown::Read);
        while !self.thread.is_finished() && since.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.stream.shutdown(Shutdown::Both);
        let _ = self.thread.join();
    }
}

/// The scrapers that are being answered.
struct Scrapers {
    clock: Clock,
    places: Mutex<Places>,
}

struct Places {
    by_age: HalfOpen<u64>,
    scrapers: BTreeMap<u64, Scraper>,
    next: u64,
}

impl Scrapers {
    fn new() -> Arc<Self> {
        let places = Places { by_age: HalfOpen::new(MAX_SCRAPERS), scrapers: BTreeMap::new(), next: 0 };
        Arc::new(Scrapers { clock: Clock::start(), places: Mutex::new(places) })
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread that answers a scraper from this address. Returns the scraper that loses its place, if any.
    fn begin(
        self: &Arc<Self>,
        from: IpAddr,
        stream: TcpStream,
        answer: impl FnOnce(&TcpStream) -> io::Result<()> + Send + 'static,
    ) -> Option<Scraper> {
        let (stream, all) = (Arc::new(stream), self.clone());
        // The thread waits for this lock before it gives its place back, so by then it is known.
        let mut places = self.places();
        let id = places.next;
        places.next += 1;
        let work = {
            let stream = stream.clone();
            move || {
                let _place = Place { all, id };
                let _ = answer(&stream);
            }
        };
        // If no thread can be started, the connection is closed.
        let thread = std::thread::Builder::new().name("scraper".into()).spawn(work).ok()?;
        places.scrapers.insert(id, Scraper { stream, thread, begun: Instant::now() });
        let evicted = places.by_age.begin(self.clock.now(), id, from)?;
        places.scrapers.remove(&evicted)
    }
}

/// A place among the scrapers.
struct Place {
    all: Arc<Scrapers>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.all.places();
        places.by_age.end(self.id);
        places.scrapers.remove(&self.id);
    }
}

/// The remaining time of a scraper, as the socket's timeout.
fn left(until: Instant) -> io::Result<Option<Duration>> {
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(Some(left)),
    }
}

fn answer(mut stream: &TcpStream, page: impl FnOnce() -> Arc<str>) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let asked = loop {
        match judge(&request) {
            Asked::Incomplete if request.len() < MAX_HEAD => {}
            asked => break asked,
        }
        stream.set_read_timeout(left(until)?)?;
        let mut buffer = [0; 1024];
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => request.extend_from_slice(&buffer[..count]),
        }
    };
    let (status, body) = match asked {
        Asked::Page { .. } => ("200 OK", page()),
        Asked::NotFound => ("404 Not Found", "metrics are at /metrics\n".into()),
        Asked::Method => ("405 Method Not Allowed", "only GET and HEAD\n".into()),
        Asked::Bad => ("400 Bad Request", "this is not an HTTP/1.1 request\n".into()),
        Asked::Incomplete => ("431 Request Header Fields Too Large", "8 KiB at most\n".into()),
    };
    // The format and its version: https://prometheus.io/docs/instrumenting/exposition_formats/
    let kind =
        if matches!(asked, Asked::Page { .. }) { "text/plain; version=0.0.4; charset=utf-8" } else { "text/plain" };
    let allow = if asked == Asked::Method { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let until = Instant::now() + PATIENCE + Duration::from_secs((length / PER_SECOND) as u64);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    // The page is shared by all scrapers, so it is not copied.
    let body = if asked == (Asked::Page { body: false }) { "" } else { &body };
    for mut rest in [head.as_bytes(), body.as_bytes()] {
        while !rest.is_empty() {
            stream.set_write_timeout(left(until)?)?;
            match stream.write(rest)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => rest = &rest[count..],
            }
        }
    }
    // If it were closed with bytes unread, the socket would send a reset, and the answer might not arrive (RFC 9112
    // §9.6).
    stream.shutdown(Shutdown::Write)?;
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
    let target = request.path.unwrap_or_default();
    // RFC 9112 §3.2.2: a server accepts the absolute form, too.
    let path = match target.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    let path = path.split('?').next();
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
        assert_eq!(
            ask(at, b"GET HTTP://box:9179/metrics?a=b HTTP/1.1\r\nHost: box:9179\r\n\r\n"),
            format!("{page}up 1\n")
        );
        assert!(ask(at, b"GET http://box:9179 HTTP/1.1\r\nHost: box:9179\r\n\r\n").starts_with("HTTP/1.1 404 "));
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

    /// A page of many peers took longer than [`FRESH`], and was made anew for each scraper.
    #[test]
    fn a_page_that_takes_long_is_used_longer() {
        let count = std::sync::atomic::AtomicU32::new(0);
        let make = || {
            std::thread::sleep(5 * FRESH);
            format!("{}", count.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
        };
        let page = Page { make, last: Mutex::new(None) };
        assert_eq!(&*page.get(), "0");
        std::thread::sleep(2 * FRESH);
        assert_eq!(&*page.get(), "0");
        std::thread::sleep(5 * FRESH);
        assert_eq!(&*page.get(), "1");
    }

    /// A flood of whole requests costs one page per 100 ms.
    #[test]
    fn a_page_is_used_again() {
        let made = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let scrape = Scrape::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let (at, count) = (scrape.local().expect("it is bound"), made.clone());
        let page = move || format!("page {}\n", count.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
        scrape.serve(page).expect("a thread");
        let begun = Instant::now();
        for _ in 0..500 {
            assert!(ask(at, b"GET /metrics HTTP/1.1\r\n\r\n").contains("page "));
        }
        let most = 1 + begun.elapsed().as_nanos().div_ceil(FRESH.as_nanos()) as usize;
        let made = made.load(std::sync::atomic::Ordering::SeqCst);
        assert!((1..=most).contains(&made), "{made} of {most}");
    }

    /// A scraper loses its place while its page is made. It has its answer.
    #[test]
    fn a_request_that_has_arrived_is_answered() {
        let scrape = Scrape::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let at = scrape.local().expect("it is bound");
        let (begins, begun) = std::sync::mpsc::channel();
        let (goes_on, may_go_on) = std::sync::mpsc::channel();
        let gate = Mutex::new((begins, may_go_on));
        let page = move || {
            let gate = gate.lock().expect("no panic");
            gate.0.send(()).expect("the test waits");
            gate.1.recv().expect("the test goes on");
            "up 1\n".to_owned()
        };
        scrape.serve(page).expect("a thread");
        let asked = std::thread::spawn(move || ask(at, b"GET /metrics HTTP/1.1\r\n\r\n"));
        begun.recv().expect("the page is being made");
        // The last of these takes its place.
        let later = [(); MAX_SCRAPERS].map(|()| TcpStream::connect(at).expect("it listens"));
        std::thread::sleep(2 * MIN_TIME);
        goes_on.send(()).expect("the page is being made");
        assert!(asked.join().expect("no panic").ends_with("up 1\n"));
        drop(later);
    }

    /// Sixty scrapers that never finish their requests: the oldest lose their places at once and the others after a while. Meanwhile a real
    /// one has its answer, and so has one whose neighbours connect again whenever they lose their places.
    #[test]
    fn the_slow_make_way() {
        let at = served();
        let hang = move || {
            let mut stream = TcpStream::connect(at).expect("it listens");
            let _ = stream.write_all(b"GET /met");
            stream
        };
        let slow: Vec<_> = (0..60).map(|_| hang()).collect();
        assert!(ask(at, b"GET /metrics HTTP/1.1\r\n\r\n").ends_with("up 1\n"));
        let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let again = [(); 20].map(|()| {
            let is_over = is_over.clone();
            std::thread::spawn(move || {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = hang().read(&mut [0]);
                }
            })
        });
        for _ in 0..10 {
            assert!(ask(at, b"GET /metrics HTTP/1.1\r\n\r\n").ends_with("up 1\n"));
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        for mut stream in slow {
            assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "closed without an answer");
        }
        again.into_iter().for_each(|thread| thread.join().expect("it ends"));
    }
}
