//! What a run writes, read back: the figures of its summary follow from the event table, from the capture and from the JSON.

use std::collections::BTreeMap;
use std::path::Path;

use bentpipe_sim::record::{Columns, Pcap, Snap, Summary, Tap};
use bentpipe_sim::{Both, run};
use bentpipe_study::scenario::{FlowKind, Scenario, Workload};
use bentpipe_study::trace::{COLUMNS, Format};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;

use crate::worlds::{parse, world};

/// The rows of an event table; a cell without a value is empty.
type Rows = Vec<Vec<String>>;

fn cell<'r>(row: &'r [String], column: &str) -> &'r str {
    &row[COLUMNS.iter().position(|c| c.name == column).expect("a column")]
}

fn number(row: &[String], column: &str) -> u64 {
    cell(row, column).parse().expect("a number")
}

/// The names in these scenarios need no quotation marks.
fn read_csv(path: &Path) -> Rows {
    let text = std::fs::read_to_string(path).expect("readable");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn read_parquet(path: &Path) -> Rows {
    let reader = SerializedFileReader::new(std::fs::File::open(path).expect("readable")).expect("Parquet");
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Long(value) => value.to_string(),
        Field::Double(value) => value.to_string(),
        other => panic!("{other:?}"),
    };
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row").get_column_iter().map(|(_, field)| text(field)).collect()).collect()
}

/// Packets and bytes on the line at each interface of a capture (pcapng: enhanced packet blocks), and the last time in nanoseconds.
fn read_capture(path: &Path) -> (BTreeMap<usize, (u64, u64)>, u64) {
    let bytes = std::fs::read(path).expect("readable");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut found, mut last) = (0, BTreeMap::new(), 0);
    while at < bytes.len() {
        let (kind, len) = (word(at), word(at + 4) as usize);
        if kind == 6 {
            let entry: &mut (u64, u64) = found.entry(word(at + 8) as usize).or_default();
            last = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            entry.0 += 1;
            entry.1 += u64::from(word(at + 24));
        }
        at += len;
    }
    (found, last)
}

/// The figures of the summary, from the rows.
fn compare_rows(scenario: &Scenario, summary: &Summary, rows: &Rows) {
    for link in &summary.links {
        let drops = |reason: &str| {
            let is = |row: &&Vec<String>| cell(row, "who") == link.name && cell(row, "reason") == reason;
            rows.iter().filter(is).count() as u64
        };
        let all = ["queue-full", "early", "channel", "listed", "too-long"].map(drops);
        let dropped = link.dropped;
        let counted = [dropped.queue_full, dropped.early, dropped.channel, dropped.listed, dropped.too_long];
        assert_eq!(all, counted, "{}", link.name);
        let waiting = rows.iter().filter(|row| cell(row, "who") == link.name && cell(row, "event") == "queue");
        assert_eq!(waiting.count() as u64, link.offered_packets - dropped.listed - dropped.too_long, "{}", link.name);
    }
    for (flow, spec) in summary.flows.iter().zip(&scenario.flows) {
        let answers =
            matches!(&spec.kind, FlowKind::Tcp(tcp) if matches!(tcp.workload, Workload::RequestResponse { .. }));
        let is_whole_tcp = matches!(spec.kind, FlowKind::Tcp(_)) && flow.legs.is_empty();
        if answers || !is_whole_tcp {
            continue;
        }
        let of = |end: &str, event: &str| {
            let who = format!("{}/{end}", flow.name);
            rows.iter().filter(|row| cell(row, "who") == who && cell(row, "event") == event).collect::<Vec<_>>()
        };
        let counts = |row: &&&Vec<String>| number(row, "len") > 0 || cell(row, "flags").contains(['S', 'F']);
        let sent = of("sender", "sent");
        let segments = sent.iter().filter(counts).count() as u64;
        let again = sent.iter().filter(|row| cell(row, "retransmission") == "1").count() as u64;
        let timeouts = of("sender", "timeout").len() as u64;
        assert_eq!([segments, again, timeouts], [flow.segments, flow.retransmissions, flow.timeouts], "{}", flow.name);
        // What has arrived without a gap, and when it last grew.
        let (mut pieces, mut until, mut at) = (BTreeMap::new(), 1, 0);
        for row in of("receiver", "received").iter().filter(|row| number(row, "len") > 0) {
            let (first, len) = (number(row, "seq"), number(row, "len"));
            let end = pieces.entry(first).or_insert(0);
            *end = u64::max(*end, first + len);
            let before = until;
            for (&first, &end) in &pieces {
                until = if first <= until { until.max(end) } else { until };
            }
            at = if until > before { number(row, "time_ns") } else { at };
        }
        assert_eq!(until - 1, flow.bytes, "{}", flow.name);
        if let Some(time) = flow.time_s {
            let read = at as f64 / 1e9 - flow.start_s;
            // Both are differences of whole nanoseconds in seconds.
            assert!((read - time).abs() < 1e-9, "{}: {read} {time}", flow.name);
        }
    }
}

/// Runs, writes everything, reads it and compares. `framed`: the start of the names of links that carry a layer's frames, of which a
/// capture shows the packets.
fn check(scenario: &Scenario, framed: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let taps = Tap::all(scenario);
    let mut csv = Columns::create(&file("e.csv"), Format::Csv, scenario, "").expect("writable");
    let mut table = Columns::create(&file("e.parquet"), Format::Parquet, scenario, "").expect("writable");
    let mut capture = Pcap::create(&file("c.pcapng"), scenario, &taps, Snap::Headers, "").expect("writable");
    let result =
        run(scenario, scenario.seed, &mut Both(&mut csv, &mut Both(&mut table, &mut capture))).expect("a path");
    csv.finish().expect("written");
    table.finish().expect("written");
    capture.finish().expect("written");
    let summary = Summary::new(scenario, &result);

    let rows = read_csv(&file("e.csv"));
    assert_eq!(rows, read_parquet(&file("e.parquet")));
    compare_rows(scenario, &summary, &rows);

    let (counts, last) = read_capture(&file("c.pcapng"));
    assert!(last <= result.end.as_nanos(), "{last}");
    let at = |name: String| {
        let tap = taps.iter().position(|tap| tap.name(scenario) == name).expect("a tap");
        counts.get(&tap).copied().unwrap_or_default()
    };
    for link in summary.links.iter().filter(|link| framed.is_empty() || !link.name.starts_with(framed)) {
        let (offered, (delivered, bytes)) = (at(format!("{}:in", link.name)).0, at(format!("{}:out", link.name)));
        assert_eq!((offered, delivered), (link.offered_packets, link.delivered_packets), "{}", link.name);
        // ns-2 counts other lengths than the headers in the capture have.
        if !scenario
            .flows
            .iter()
            .any(|flow| matches!(&flow.kind, FlowKind::Tcp(tcp) if tcp.sender.shortcuts.ns2_lengths))
        {
            assert_eq!(bytes, link.delivered_bytes, "{}", link.name);
        }
    }

    let value = serde_json::to_value(&summary).expect("JSON");
    let read: serde_json::Value = serde_json::from_str(&value.to_string()).expect("JSON");
    assert_eq!(read, value);
    for (n, flow) in summary.flows.iter().enumerate() {
        let figures = [flow.time_s, flow.goodput_bit_s, flow.x_limit];
        assert_eq!(["time_s", "goodput_bit_s", "x_limit"].map(|key| read["flows"][n][key].as_f64()), figures);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_says_what_the_summary_says(text in world()) {
        check(&parse(&text), "");
    }
}

/// The same for gateways, link layers and the other transports.
#[test]
fn every_kind_of_part_is_written_in_full() {
    let boxes = |shape: &str| format!("[[gateways]]\nname = \"boxes\"\nshape = \"{shape}\"\n");
    let two = "near = \"near\"\nfar = \"far\"\n";
    let cases = [
        format!("{}{two}", boxes("link")),
        format!("{}{two}", boxes("split")),
        format!("{}at = \"far\"\n", boxes("uplink")),
        "[[layers]]\nname = \"layer\"\nover = \"sat\"\n".to_owned(),
        #[cfg(feature = "quic")]
        "[[flows]]\nname = \"q\"\ntype = \"quic\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"100 kB\"\n".to_owned(),
        "[[flows]]\nname = \"s\"\ntype = \"stp\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"100 kB\"\n\
         stp = { rate = \"1 Mbit/s\", rtt = \"300 ms\" }\n"
            .to_owned(),
    ];
    for part in cases {
        let framed = if part.contains("layers") || part.contains("near") { "sat" } else { "" };
        let text = format!(
            "name = \"parts\"\ntime_limit = \"600 s\"\n\
             [[links]]\nname = \"internet\"\nbetween = [\"server\", \"far\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [[links]]\nname = \"sat\"\nbetween = [\"far\", \"near\"]\nrate = \"2 Mbit/s\"\ndelay = \"140 ms\"\nqueue = \"30 packets\"\nloss = \"1 %\"\n\
             [[links]]\nname = \"lan\"\nbetween = [\"near\", \"client\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [[flows]]\nname = \"d\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"300 kB\"\n\
             [[flows]]\nname = \"u\"\ntype = \"udp\"\nfrom = \"server\"\nto = \"client\"\nrate = \"50 kbit/s\"\npacket = \"200 B\"\nstop = \"5 s\"\n\
             {part}"
        );
        check(&parse(&text), framed);
    }
}
