//! A box that does not run for a while.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use super::pair::{Line, NAMES, Running, asks, bytes, echo};

/// What happens to connections while one of two boxes does not run.
pub(crate) struct Slept {
    /// Seconds from its return until a new connection is answered through both boxes.
    pub(crate) serves_after: f64,
    /// Seconds from its return until the client of an idle connection learned that it is closed.
    pub(crate) told_after: f64,
    /// Connections that ended as if complete, or with wrong bytes.
    pub(crate) wrong: usize,
    /// The log of the stopped box since then, and that of the other box.
    pub(crate) said: [String; 2],
}

/// Stops box `sleeper` of [`NAMES`] for `span`, during a transfer and with an idle connection open.
pub(crate) fn slept(
    line: &Line,
    start: impl Fn(&str) -> Running,
    sleeper: usize,
    span: Duration,
    on_return: impl Fn(),
) -> Slept {
    let both = NAMES.map(start);
    line.wait_until_up(&NAMES, true);
    let server = line.serve(80, |mut stream| {
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        let _ = stream.write_all(&got);
    });
    let again = line.serve(81, echo);
    let mut idle = line.connect(again).expect("it connects");
    asks(&mut idle).expect("an answer");
    idle.set_read_timeout(Some(Duration::from_secs(60))).expect("not zero");
    let mut transfer = line.connect(server).expect("it connects");
    transfer.set_read_timeout(Some(span + Duration::from_secs(90))).expect("not zero");
    let sent = bytes(8_000_000);
    let expected = sent.clone();
    let mut writer = transfer.try_clone().expect("a descriptor");
    let sender = std::thread::spawn(move || writer.write_all(&sent).and_then(|()| writer.shutdown(Shutdown::Write)));
    // The counters have the transfer only after their next update. If `known` lacked it, a connection around the boxes would pass for one
    // through them.
    let known = line.fresh_status("far")["split"]["connected"].as_u64().expect("a number");
    let before = [sleeper, 1 - sleeper].map(|n| line.said(NAMES[n]).len());
    both[sleeper].signal("STOP");
    std::thread::sleep(span);
    on_return();
    both[sleeper].signal("CONT");
    let returned = Instant::now();
    let connected = || line.status("far").and_then(|status| status["split"]["connected"].as_u64()).unwrap_or(0);
    // It did not bypass the boxes: the far one has counted it.
    let serves = || line.connect(again).and_then(|mut stream| asks(&mut stream)).is_ok() && connected() > known;
    while !serves() && returned.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let serves_after = returned.elapsed().as_secs_f64();
    let ended = asks(&mut idle);
    let told_after = returned.elapsed().as_secs_f64();
    let mut got = Vec::new();
    let end = transfer.read_to_end(&mut got).and(sender.join().expect("no panic"));
    let is_wrong = end.is_ok() && got != expected || !expected.starts_with(&got);
    let said = [sleeper, 1 - sleeper].map(|n| line.said(NAMES[n])).into_iter().zip(before);
    let said: Vec<_> = said.map(|(said, before)| said[before..].to_owned()).collect();
    let wrong = usize::from(is_wrong) + usize::from(ended.is_ok() && span > Duration::from_secs(30));
    Slept { serves_after, told_after, wrong, said: said.try_into().expect("two") }
}

/// A stop longer than `dead_after`, 5 s: the other box logs that the peer is gone, both log its return, and it serves again.
#[test]
fn a_box_that_sleeps_comes_back() {
    for sleeper in [0, 1] {
        let line = Line::new("20 Mbit/s");
        let slept = slept(&line, |name| line.start(name, 1024), sleeper, Duration::from_secs(8), || ());
        let Slept { serves_after, told_after, wrong, said } = slept;
        assert!(
            serves_after < 20.0 && told_after < 20.0 && wrong == 0,
            "{serves_after} s, {told_after} s, {wrong} wrong"
        );
        let [own, others] = said;
        assert!(others.contains(" s (`dead_after`): the link is down"), "{others}");
        assert!(own.contains("is up") && others.contains("is up"), "{own}{others}");
    }
}
