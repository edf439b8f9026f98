//! The status of a gateway as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::{Reading, Readings, Value};
use serde_json::{Map, Value as Json, json};

/// Writes the status. Only one peer's values are in memory as JSON at a time: those of 30 000 peers would take 1 GB.
pub(super) fn write(readings: &Readings, out: &mut dyn Write) -> io::Result<()> {
    let mut all = Map::new();
    all.insert("name".into(), readings.name().into());
    all.insert("shape".into(), readings.shape().into());
    let mut peers = BTreeMap::<&str, Vec<&[Reading]>>::new();
    for same in readings.parts().into_iter().flat_map(|part| part.chunk_by(|one, other| one.peer == other.peer)) {
        match &same[0].peer {
            None => add(&mut all, same),
            Some(peer) => peers.entry(peer).or_default().push(same),
        }
    }
    if !peers.is_empty() {
        // Its place in the order of the keys.
        all.insert("peers".into(), Json::Null);
    }
    let mut before = "{";
    for (key, value) in all {
        write!(out, "{before}\n  {}: ", json!(key))?;
        before = ",";
        if key == "peers" {
            write_peers(&peers, out)?;
        } else {
            out.write_all(indented(&value, "\n  ").as_bytes())?;
        }
    }
    out.write_all(b"\n}\n")
}

fn write_peers(peers: &BTreeMap<&str, Vec<&[Reading]>>, out: &mut dyn Write) -> io::Result<()> {
    let mut before = "{";
    for (peer, values) in peers {
        let mut of = Map::new();
        values.iter().for_each(|same| add(&mut of, same));
        write!(out, "{before}\n    {}: {}", json!(peer), indented(&of.into(), "\n    "))?;
        before = ",";
    }
    out.write_all(b"\n  }")
}

/// A value over several lines, each of which begins like this. A text has no line breaks: they are escaped.
fn indented(value: &Json, line: &str) -> String {
    format!("{value:#}").replace('\n', line)
}

/// Adds these readings.
fn add(of: &mut Map<String, Json>, readings: &[Reading]) {
    for reading in readings {
        let value = match &reading.value {
            Value::Total(count) | Value::Level(count) => json!(count),
            Value::Flag(flag) => json!(flag),
            Value::Millis(span) => json!(span.map(|span| span.as_nanos() / 1_000_000)),
            Value::Spent(span) => json!(span.as_nanos() / 1_000_000),
            Value::Micros(span) => json!(span.as_nanos() / 1000),
            Value::Text(text) => json!(text),
        };
        let table = match reading.table {
            "" => &mut *of,
            table => of.entry(table).or_insert_with(|| json!({})).as_object_mut().expect("a table's name is no key"),
        };
        let sum = table.entry(reading.key).or_insert(Json::Null);
        *sum = match (sum.as_u64(), value.as_u64()) {
            (Some(sum), Some(more)) => json!(sum + more),
            _ => value,
        };
    }
}

#[cfg(test)]
pub(super) mod tests {
    use bentpipe_engine::units::Duration;

    use super::*;

    /// The whole status.
    pub(crate) fn text(readings: &Readings) -> String {
        let mut text = Vec::new();
        write(readings, &mut text).expect("memory takes it");
        String::from_utf8(text).expect("text")
    }

    fn peer(readings: &mut Readings, name: &str, count: u64) {
        readings.of_peer(Some(name.into()), |readings| {
            readings.add("", "link_up", "u", "U.", Value::Flag(true));
            readings.add("tunnel", "peer", "p", "P.", Value::Text(Some(format!("{name}\n:9"))));
            readings.add("tunnel", "heard_ms_ago", "h", "H.", Value::Millis(None));
            for _ in 0..2 {
                readings.add("satellite", "lost", "l", "L.", Value::Total(count));
            }
        });
    }

    /// The text is that of the whole as one value, whatever the order in which peers were added.
    #[test]
    fn parts_are_written_like_a_whole() {
        let mut readings = Readings::new("hub \"1\"\n", "link");
        readings.add("tunnel", "peers", "n", "N.", Value::Level(3));
        for (n, name) in ["boat \"9\"\n", "boat-10", "boat-1"].into_iter().enumerate() {
            peer(&mut readings, name, n as u64);
        }
        readings.add("", "up", "up", "Up.", Value::Flag(false));
        let mut readings = Readings::over(readings.into());
        readings.add("", "age_ms", "a", "A.", Value::Millis(Some(Duration::from_millis(3))));
        let of = |name: &str, lost: u64| {
            let tunnel = json!({ "peer": format!("{name}\n:9"), "heard_ms_ago": null });
            json!({ "link_up": true, "tunnel": tunnel, "satellite": { "lost": lost } })
        };
        let peers: Map<_, _> = [("boat-1", 4), ("boat-10", 2), ("boat \"9\"\n", 0)]
            .into_iter()
            .map(|(name, lost)| (name.to_owned(), of(name, lost)))
            .collect();
        let whole = json!({
            "name": "hub \"1\"\n", "shape": "link", "up": false, "age_ms": 3, "tunnel": { "peers": 3 }, "peers": peers,
        });
        assert_eq!(text(&readings), format!("{whole:#}\n"));
        let whole = json!({ "name": "a", "shape": "link" });
        assert_eq!(text(&Readings::new("a", "link")), format!("{whole:#}\n"));
    }

    /// The longest write, and all together.
    struct Longest(usize, usize);

    impl Write for Longest {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.max(bytes.len());
            self.1 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A hub's status was in memory twice, as values and as text: 1.3 GB with 30 000 peers.
    #[test]
    fn peers_are_written_one_by_one() {
        let mut readings = Readings::new("hub", "link");
        (0..1000).for_each(|n| peer(&mut readings, &format!("boat-{n}"), n));
        let mut out = Longest(0, 0);
        write(&readings, &mut out).expect("it takes all");
        let Longest(longest, all) = out;
        assert!(longest < 300 && all > 150_000, "{longest} of {all}");
    }
}
