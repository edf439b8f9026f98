//! What a reader of a box's memory finds.

use std::fs::File;
use std::os::unix::fs::FileExt;

use base64::prelude::{BASE64_STANDARD, Engine};

use crate::Measured;
use crate::flooded::{MEMORY, flooded};
use crate::pair::{Line, asks, echo};

/// How often the bytes occur in the writable memory of a process.
fn copies(pid: u32, wanted: &[u8]) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs, and we are root");
    let memory = File::open(format!("/proc/{pid}/mem")).expect("root");
    let mut count = 0;
    for map in maps.lines().filter(|map| map.split(' ').nth(1).is_some_and(|mode| mode.starts_with("rw"))) {
        let (from, to) = map.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).expect("an address"));
        let mut bytes = vec![0; (to - from) as usize];
        // The kernel's own mappings cannot be read.
        if memory.read_exact_at(&mut bytes, from).is_ok() {
            count += bytes.windows(wanted.len()).filter(|part| part == &wanted).count();
        }
    }
    count
}

/// The private key in the memory of both boxes, after handshakes and traffic, and its text, as the file has it.
pub(super) fn keys(_: bool) -> Measured {
    let line = Line::new("20 Mbit/s");
    let server = line.serve(80, echo);
    let (near, mut far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);
    // A second handshake, so that there are superseded keys.
    far.0.kill().expect("it runs");
    far.0.wait().expect("it ends");
    far = line.start("far", 1024);
    line.wait_until_up(&["far"], true);
    for _ in 0..20 {
        let _ = line.connect(server).and_then(|mut stream| asks(&mut stream));
    }
    let found = [("near", near.0.id()), ("far", far.0.id())].map(|(name, pid)| {
        let text = std::fs::read_to_string(line.folder.path().join(format!("{name}.key"))).expect("a key");
        // X25519 sets and clears bits of the first byte and the last: those between them are the same in any form.
        let key = BASE64_STANDARD.decode(text.trim()).expect("base64");
        assert_eq!(key.len(), 32);
        [copies(pid, &key[1..31]), copies(pid, &text.trim().as_bytes()[2..41])]
    });
    let text = format!(
        "near {} and far {} copies of the key, {} and {} of its text",
        found[0][0], found[1][0], found[0][1], found[1][1]
    );
    // No copy at all would mean that the search does not see it.
    Measured { text, is_met: found == [[1, 0]; 2] }
}

/// The growth of a box's memory while its hosts send more than the link carries.
pub(super) fn flood(_: bool) -> Measured {
    let [link, split] = ["link", "split"].map(flooded);
    let text = format!("+{:.1} MB in `link`, +{:.1} MB in `split`", link as f64 / 1e6, split as f64 / 1e6);
    Measured { text, is_met: link.max(split) <= MEMORY / 5 * 6 }
}
