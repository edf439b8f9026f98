//! Metrics: scraped from a running pair, and the files that go with them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::pair::{Line, METRICS, Pair, Wanted, bytes, send, until};
use crate::namespace::Namespace;
use crate::threads::Threads;

/// The whole answer of a gateway to a request.
fn ask(host: &Namespace, request: &'static [u8]) -> String {
    host.inside(move || {
        let mut stream = TcpStream::connect(METRICS).expect("it listens");
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it is closed in order");
        String::from_utf8(answer).expect("text")
    })
}

/// Values by name, summed over all channels.
fn scrape(host: &Arc<Namespace>) -> BTreeMap<String, f64> {
    let answer = ask(host, b"GET /metrics HTTP/1.1\r\nHost: gateway\r\nAccept: text/plain;version=0.0.4\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    let mut values = BTreeMap::new();
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once('{').expect("labels");
        let (_, value) = rest.rsplit_once("} ").expect("a value");
        *values.entry(name.to_owned()).or_insert(0.0) += value.parse::<f64>().expect("a number");
    }
    values
}

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// Every expression in a dashboard.
fn expressions(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                match value {
                    Value::String(text) if key == "expr" || key == "query" || key == "definition" => {
                        all.push(text.clone());
                    }
                    _ => expressions(value, all),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| expressions(value, all)),
        _ => {}
    }
}

/// The names of metrics in a text: all words with our prefix.
fn names(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("bentpipe_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

/// Metrics that only a hub has.
const OF_HUBS: [&str; 2] = ["bentpipe_gateway_peer_cpu_seconds_total", "bentpipe_gateway_datagrams_dropped_total"];

/// Only metrics of hubs always have the label `peer`: a gateway with one peer gives it no name.
#[test]
fn alerts_do_without_the_name_of_an_only_peer() {
    let rules = packaging().join("prometheus/bentpipe-gateway.rules.yml");
    let rules = std::fs::read_to_string(rules).expect("it is there");
    let mut found = 0;
    for rule in rules.split("- alert: ").skip(1) {
        let (head, summary) = rule.split_once("summary:").expect("each has one");
        if summary.contains("{{ $labels.peer }}") {
            assert!(names(head).iter().all(|name| OF_HUBS.contains(&name.as_str())), "{rule}");
            found += 1;
        }
    }
    assert_eq!(found, OF_HUBS.len());
}

/// Status and metrics agree, and the dashboard and alert rules use no other metric.
#[test]
fn metrics_of_a_running_pair() {
    let pair = Pair::new(&Wanted { rate: "100 Mbit/s", descriptors: 1024 });
    let at = pair.serve(80, |mut stream| {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = stream.write_all(&bytes[..bytes.len() / 2]);
    });
    let mut stream = pair.connect(at).expect("it connects");
    let sender = send(&stream, bytes(1_000_000));
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("no reset");
    sender.join().expect("all is sent");
    until("it is counted", || pair.status("near").is_some_and(|s| s["split"]["closed"] == 1));

    let metrics = scrape(&pair.near);
    assert_eq!(metrics["bentpipe_gateway_link_up"], 1.0);
    assert_eq!(metrics["bentpipe_gateway_rate_told_bytes_per_second"], 12.5e6);
    assert_eq!(metrics["bentpipe_gateway_streams_sent_bytes_total"], 1e6);
    assert_eq!(metrics["bentpipe_gateway_streams_received_bytes_total"], 5e5);
    assert_eq!(metrics["bentpipe_gateway_streams_accepted_total"], 1.0);
    assert!(metrics["bentpipe_gateway_frame_sent_bytes_total"] > 1e6);
    assert!(metrics["bentpipe_gateway_packet_received_bytes_total"] > 5e5);
    // Once the round trip is measured, it is above zero, and below a second on two wires.
    let round_trip = metrics["bentpipe_gateway_round_trip_seconds"];
    assert!(round_trip > 0.0 && round_trip < 1.0, "{round_trip}");
    let status = pair.status("near").expect("it answers");
    assert_eq!(status["split"]["bytes_sent"], 1_000_000);
    assert!(status["process"]["resident_bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000));
    assert_eq!(status["process"]["max_fds"], 1024);
    assert!(status["satellite"]["round_trip_ms"].is_u64());

    // A request for anything else gets an error, and a client that sends no request holds up nobody.
    let silent = pair.near.inside(|| TcpStream::connect(METRICS).expect("it listens"));
    assert!(ask(&pair.near, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(&pair.near, b"\0\0\0\0\r\n\r\n").starts_with("HTTP/1.1 400 "));
    drop(silent);

    let dashboard = std::fs::read_to_string(packaging().join("grafana/bentpipe-gateway.json")).expect("it is there");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("it is JSON");
    let mut asked = Vec::new();
    expressions(&dashboard, &mut asked);
    assert!(asked.len() > 10, "{asked:?}");
    let rules =
        std::fs::read_to_string(packaging().join("prometheus/bentpipe-gateway.rules.yml")).expect("it is there");
    // The dashboard covers every shape and hubs. A rule may be about one shape.
    let of_all: BTreeSet<_> =
        bentpipe_gateway::metrics().expect("/proc is there").iter().map(|metric| metric.name).collect();
    for (file, text) in [("dashboard", asked.join(" ")), ("rules", rules)] {
        let names = names(&text);
        for name in OF_HUBS {
            assert!(names.contains(name), "{file}: {name} is missing");
        }
        assert!(names.len() > 3, "{file}: {names:?}");
        for name in &names {
            assert!(of_all.contains(name.as_str()), "{file}: nothing says {name}");
            let is_said = metrics.contains_key(name) || OF_HUBS.contains(&name.as_str());
            assert!(is_said || file == "rules", "{file}: `split` does not say {name}");
        }
    }
    // The reference lists exactly the metrics of a gateway.
    let unlisted: Vec<_> = metrics.keys().filter(|name| !of_all.contains(name.as_str())).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
    pair.end();
}

/// Sixty clients hold connections to the metrics port open, with a request that does not end, without any, or without reading, and connect
/// again when they are closed. Each scrape has its answer, also from their own address, and the status has.
#[test]
fn clients_that_hang_keep_nobody_out() {
    let line = Line::new("100 Mbit/s");
    let _near = line.start("near", 1024);
    until("it runs", || line.status("near").is_some());
    let mut hanging = Threads::default();
    for n in 0..60 {
        hanging.add(|is_over| {
            line.near.spawn(move || {
                let request = [&b"GET /met"[..], b"", b"GET /metrics HTTP/1.1\r\n\r\n"][n % 3];
                while !is_over.load(Ordering::Relaxed) {
                    // While the port's queue is full, connecting takes a while.
                    let Ok(mut stream) = TcpStream::connect(METRICS) else { continue };
                    let _ = stream.write_all(request);
                    let mut byte = [0];
                    while n % 3 != 2 && stream.read(&mut byte).is_ok_and(|count| count > 0) {}
                    std::thread::sleep(std::time::Duration::from_millis(if n % 3 == 2 { 500 } else { 0 }));
                }
                0
            })
        });
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    for _ in 0..5 {
        // Prometheus waits for 10 s. A full queue of 128 connections takes 2.4 s.
        let begun = std::time::Instant::now();
        assert_eq!(scrape(&line.near)["bentpipe_gateway_link_up"], 0.0);
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
        assert!(line.status("near").is_some());
    }
    let status = line.fresh_status("near");
    // The gateway's own and those of eight scrapers.
    assert!(status["process"]["open_fds"].as_u64().is_some_and(|count| count < 40), "{status}");
    hanging.join();
}
