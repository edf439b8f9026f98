//! A box that the kernel kills for its memory.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Measured;
use crate::pair::{Line, NAMES, bytes, echo};
use crate::rows::serves;

/// Transfers at once, and the bytes of each.
const COUNT: usize = 20;
const TRANSFER: u32 = 4_000_000;

/// A memory cgroup of this process's own, of version 1 or 2.
struct Cgroup {
    folder: PathBuf,
    limit: &'static str,
    events: &'static str,
}

impl Cgroup {
    fn new() -> std::io::Result<Cgroup> {
        let name = format!("bentpipe-{}", std::process::id());
        let (root, limit, events) = if PathBuf::from("/sys/fs/cgroup/memory").is_dir() {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control")
        } else {
            ("/sys/fs/cgroup", "memory.max", "memory.events")
        };
        let cgroup = Cgroup { folder: PathBuf::from(root).join(name), limit, events };
        fs::create_dir(&cgroup.folder)?;
        Ok(cgroup)
    }

    /// Lets a process have so much memory beside what it has.
    fn confine(&self, process: u32, bytes: u64) -> std::io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), process.to_string())?;
        fs::write(self.folder.join(self.limit), bytes.to_string())
    }

    /// Processes that were killed.
    fn kills(&self) -> u64 {
        let events = fs::read_to_string(self.folder.join(self.events)).unwrap_or_default();
        let count = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Each box in turn is killed in the middle of transfers that it sends over the link, and started again.
pub(super) fn killed(_: bool) -> Measured {
    let line = Line::new("100 Mbit/s");
    let books = Books { sent: bytes(TRANSFER).into(), ..Books::default() };
    let uploads = line.serve(80, {
        let books = books.clone();
        move |stream| books.receive(stream)
    });
    let downloads = line.serve(81, {
        let books = books.clone();
        move |stream| books.send(stream)
    });
    let again = line.serve(82, echo);
    let mut boxes = NAMES.map(|name| line.start(name, 1024));
    line.wait_until_up(&NAMES, true);
    let (mut kills, mut worst, mut silent) = (0, 0.0_f64, 0);
    for (n, to, work) in [(0, uploads, Books::send as fn(&Books, TcpStream)), (1, downloads, Books::receive)] {
        let cgroup = match Cgroup::new() {
            Ok(cgroup) => cgroup,
            Err(error) => return Measured { text: format!("no memory cgroup can be made: {error}"), is_met: false },
        };
        let heard = line.said(NAMES[1 - n]).len();
        let streams: Vec<_> = (0..COUNT).map(|_| line.connect(to).expect("it connects")).collect();
        let clients: Vec<_> = streams
            .into_iter()
            .map(|stream| {
                let books = books.clone();
                std::thread::spawn(move || work(&books, stream))
            })
            .collect();
        // Of the 6.4 s that all of them take.
        std::thread::sleep(Duration::from_secs(1));
        if let Err(error) = cgroup.confine(boxes[n].0.id(), 64 << 10) {
            return Measured { text: format!("the memory cgroup takes nothing: {error}"), is_met: false };
        }
        boxes[n].fails();
        kills += cgroup.kills();
        let start = Instant::now();
        boxes[n] = line.start(NAMES[n], 1024);
        while !serves(&line, again) && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        worst = worst.max(start.elapsed().as_secs_f64());
        clients.into_iter().for_each(|client| client.join().expect("no panic"));
        silent += usize::from(!line.said(NAMES[1 - n])[heard..].contains("is up"));
    }
    let [whole, cut, wrong] = [&books.whole, &books.cut, &books.wrong].map(|count| count.load(Ordering::Relaxed));
    let text = format!(
        "{kills} killed, serves after {worst:.2} s; {whole} transfers whole, {cut} cut, {wrong} wrong, {silent} silent"
    );
    Measured { text, is_met: kills == 2 && worst < 3.0 && cut > 0 && wrong == 0 && silent == 0 }
}

/// What became of the transfers.
#[derive(Clone, Default)]
struct Books {
    sent: Arc<[u8]>,
    whole: Arc<AtomicUsize>,
    cut: Arc<AtomicUsize>,
    wrong: Arc<AtomicUsize>,
}

impl Books {
    fn send(&self, mut stream: TcpStream) {
        let _ = stream.write_all(&self.sent).and_then(|()| stream.shutdown(Shutdown::Write));
        // Until the other end closes, or the connection is reset.
        let _ = stream.read(&mut [0]);
    }

    fn receive(&self, mut stream: TcpStream) {
        let mut got = Vec::new();
        let count = match stream.read_to_end(&mut got) {
            Ok(_) if got == *self.sent => &self.whole,
            Ok(_) => &self.wrong,
            Err(_) => &self.cut,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
