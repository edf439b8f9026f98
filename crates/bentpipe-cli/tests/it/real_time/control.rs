//! `bentpipe link`: changes of links while an emulation runs.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::emulate::{echo, link, round_trip};
use super::support::{Emulation, bound, file, of_link, output, possible};

/// An emulation with a control socket, and a UDP socket at either end of its link.
struct Live {
    /// `None` once it has been stopped.
    emulation: Option<Emulation>,
    near: UdpSocket,
    far: UdpSocket,
    path: String,
    socket: String,
    _folder: TempDir,
}

impl Live {
    fn start(text: &str) -> Live {
        let (folder, path) = file(text);
        let socket = folder.path().join("control").to_str().expect("plain").to_owned();
        let emulation = Emulation::start(&[&path, "--control", &socket]);
        let (a, b) = (emulation.host("A"), emulation.host("B"));
        let (near, far) = (a.inside(|| bound(a.v4.into())), b.inside(|| bound(b.v4.into())));
        Live { emulation: Some(emulation), near, far, path, socket, _folder: folder }
    }

    /// The exit code and what `bentpipe link` says.
    fn ask(&self, words: &[&str]) -> (Option<i32>, String) {
        let end = output(&[&["link"], words, &["--control", &self.socket]].concat());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (end.status.code(), text(end.stdout) + &text(end.stderr))
    }

    fn set(&self, words: &[&str]) -> (Option<i32>, String) {
        self.ask(&[&["set"], words].concat())
    }

    /// The counters at the end.
    fn stop(&mut self) -> Value {
        self.emulation.take().expect("it runs").stop()
    }

    fn address(&self) -> SocketAddr {
        self.far.local_addr().expect("bound")
    }

    /// Sends a datagram there and back.
    fn trip(&self) -> Duration {
        std::thread::scope(|scope| {
            scope.spawn(|| echo(&self.far).expect("it comes"));
            round_trip(&self.near, self.address()).expect("it comes back")
        })
    }

    /// The shortest of five round trips, in milliseconds.
    fn best(&self) -> f64 {
        (0..5).map(|_| self.trip().as_secs_f64() * 1e3).fold(f64::INFINITY, f64::min)
    }
}

/// A scenario without flows. Its delay is changed while it runs; invalid changes are refused.
#[test]
fn a_link_is_changed_while_it_runs() {
    if !possible() {
        return;
    }
    let text = link("");
    let mut live = Live::start(text.split("[[flows]]").next().expect("links"));
    assert!((200.0..206.0).contains(&live.best()));
    assert_eq!(live.set(&["sat", "delay=20 ms"]), (Some(0), "changed sat/forward, sat/backward\n".to_owned()));
    let shorter = live.best();
    assert!((40.0..46.0).contains(&shorter), "{shorter} ms");
    let (code, text) = live.set(&["sat/forward", "delay=60 ms", "queue=9 packets", "--json"]);
    let changed: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!((code, &changed["changed"]), (Some(0), &serde_json::json!(["sat/forward"])));
    let longer = live.best();
    assert!((80.0..86.0).contains(&longer), "{longer} ms");
    for (words, said) in [
        (["satt", "delay=1 ms"], "did you mean `sat`?"),
        (["sat", "delay=1"], "needs a unit"),
        (["sat", "dealy=1 ms"], "did you mean `delay`?"),
        (["sat", "from=X"], "cannot change while it runs"),
    ] {
        let (code, text) = live.set(&words);
        assert!(code == Some(2) && text.contains(said), "{words:?}: {text}");
    }
    assert!((80.0..86.0).contains(&live.best()), "what is refused changes nothing");
    // A fade loses the packets sent during it, and no later ones.
    let faded = live.ask(&["fade", "sat/forward", "500 ms"]);
    assert_eq!(faded, (Some(0), "sat/forward: all packets are lost for 0.5 s\n".to_owned()));
    live.near.send_to(b"lost", live.address()).expect("sent");
    std::thread::sleep(Duration::from_millis(600));
    assert!((80.0..86.0).contains(&live.best()), "the link is as before");
    let (code, text) = live.ask(&["fade", "sat/forward", "1 ms", "--json"]);
    let faded: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!((code, &faded["faded"]["links"]), (Some(0), &serde_json::json!(["sat/forward"])));
    assert!(live.ask(&["fade", "sat", "0 s"]).1.contains("longer than 0 s"));
    let summary = live.stop();
    assert_eq!(of_link(&summary, "sat/forward", "dropped_channel"), 1, "{summary}");
    assert!(!std::path::Path::new(&live.socket).exists());
    assert_eq!(live.set(&["sat", "delay=1 ms"]).0, Some(2), "nobody answers");
    // Other commands report what is missing.
    let run = output(&["run", &live.path]);
    assert!(run.status.code() == Some(2) && String::from_utf8_lossy(&run.stderr).contains("has no flows"));
}

/// Of a managed queue only its own settings stay.
#[test]
fn a_link_with_a_managed_queue_is_changed_while_it_runs() {
    if !possible() {
        return;
    }
    let managed = "queue = { limit = \"100 packets\", discipline = \"fq-codel\" }";
    let mut live = Live::start(&link(managed));
    assert!((200.0..206.0).contains(&live.best()));
    assert_eq!(live.set(&["sat", "delay=20 ms", "rate=10 Mbit/s"]).0, Some(0));
    let shorter = live.best();
    assert!((40.0..46.0).contains(&shorter), "{shorter} ms");
    let (code, text) = live.set(&["sat", "queue=9 packets"]);
    assert!(code == Some(2) && text.contains("`queue` of `sat/forward` cannot change while it runs"), "{text}");
    assert_eq!(live.ask(&["fade", "sat/forward", "500 ms"]).0, Some(0));
    live.near.send_to(b"lost", live.address()).expect("sent");
    std::thread::sleep(Duration::from_millis(600));
    assert!((40.0..46.0).contains(&live.best()), "the link is as before");
    assert_eq!(of_link(&live.stop(), "sat/forward", "dropped_channel"), 1);
}

/// A layer depends on the rate and the delay of its links, but not on what they lose: it repairs that.
#[test]
fn a_link_below_a_layer_loses_what_it_is_told() {
    if !possible() {
        return;
    }
    let layer = "[[layers]]\nname = \"arq\"\nover = \"sat\"\n";
    let mut live = Live::start(&link(layer));
    assert!((200.0..206.0).contains(&live.best()));
    for change in ["delay=20 ms", "rate=10 Mbit/s", "mtu=600 B"] {
        let (code, text) = live.set(&["sat", change]);
        assert!(code == Some(2) && text.contains("`arq` over `sat/forward` depends on its rate"), "{change}: {text}");
    }
    assert_eq!(live.set(&["sat/backward", "loss=1 %"]).0, Some(0));
    assert_eq!(live.ask(&["fade", "sat/forward", "1 s"]).0, Some(0));
    live.trip();
    let summary = live.stop();
    assert!(of_link(&summary, "sat/forward", "dropped_channel") > 0, "{summary}");
}
