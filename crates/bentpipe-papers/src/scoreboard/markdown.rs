//! The document: published results, a table for each link, and the behaviour of the transports.

use std::fmt::Write;

use bentpipe_sweep::Median;
use bentpipe_sweep::board::{Board, Cell, Conduct, Field, OWN_LOSS, TRANSPORTS, Table};

use super::{Beside, Best, beside};

const HEAD: &str = "# Scoreboard

Downloads over satellite links with the transports in common use, end to end and with bentpipe gateways. All results are simulated
(`bentpipe scoreboard`) in virtual time; nothing was measured on a satellite.

- A cell is the transfer time in seconds, from the first packet of the connection to the last byte at the receiver: the median over
  seeds, with its 95 % interval (order statistics) in brackets. A number without one is of a single run, because nothing on that path is
  random, or fewer than six runs finished.
  `–`: at least half of the transfers took longer than an hour.
- The sender opens the connection. A client that sends a request first waits half a round trip longer.
- `x limit` is the time divided by the minimum time that the links allow TCP end to end, handshake included; the geometric mean over the
  table's transfers. Rows are sorted by it. Values below 1 are possible: 0-RTT and `split` open without a round trip.
- `ping` is the 99th percentile of a ping's forward delay plus that of its return delay, beside the transfer; the maximum over the table.
- Box: `plain` none; `uplink` one before the satellite; `link` and `split` two around it. A box cannot terminate QUIC.
- Transports with identical results share a row, for example where a box takes over.
- Hosts with Linux's TCP have Linux's receive window: it starts at 64 kB and grows with the data received. It limits senders that could start
  faster, such as `resume` or `uplink`.

";

/// The short name of a row with every TCP transport.
const ALL_TCP: &str = "all TCP";

/// Returns the board as Markdown; `remake` is the command that reproduces it.
pub fn to_markdown(board: &Board, remake: &str) -> String {
    let mut out = String::from(HEAD);
    let _ = writeln!(out, "Made by: `{remake}`\n");
    transports(&mut out);
    others(&mut out, &beside(board));
    for table in board.tables() {
        link(&mut out, &table);
    }
    conduct(&mut out, &board.conduct);
    out
}

fn transports(out: &mut String) {
    out.push_str("| transport | what |\n|---|---|\n");
    for transport in TRANSPORTS {
        let _ = writeln!(out, "| {} | {} |", transport.name, transport.what);
    }
}

fn others(out: &mut String, all: &[Beside]) {
    if all.is_empty() {
        return;
    }
    out.push_str("\n## Published results\n\n`theirs / ours` above 1 means that our median is faster. Ours is the minimum of several medians of few runs, which is biased low: see the \
         interval, and [the result of more runs](howto/scoreboard.md#faster-from-end-to-end).\n\n");
    out.push_str(
        "| link | loss | size | who | theirs (s) | best end to end (s) | theirs / ours | best with boxes (s) |\n",
    );
    out.push_str("|---|---|---|---|---:|---:|---:|---:|\n");
    for result in all {
        let [place, loss, size] = result.field;
        let shown = |best: &Option<Best>| {
            best.as_ref().map_or("–".to_owned(), |best| format!("{}, {}", with_interval(best.time_s), best.name))
        };
        let ratio = result.end_to_end.as_ref().map(|best| result.time_s / best.time_s.median);
        let _ = writeln!(
            out,
            "| {place} | {loss} | {size} | {} | {:.2} | {} | {} | {} |",
            result.who,
            result.time_s,
            shown(&result.end_to_end),
            number(ratio, 2),
            shown(&result.with_boxes)
        );
    }
    let mut sources: Vec<_> = all.iter().map(|result| result.source).collect();
    sources.dedup();
    let _ = writeln!(out, "\nSources: {}.", sources.join("; "));
}

fn link(out: &mut String, table: &Table<'_>) {
    let _ = writeln!(out, "\n## {}\n\n{}.\n", table.place.name, table.place.what);
    let columns: Vec<_> = table.fields.iter().map(|(field, _)| column(field)).collect();
    let _ = writeln!(out, "| transport | box | {} | x limit | ping (s) |", columns.join(" | "));
    let _ = writeln!(out, "|---|---|{}---:|---:|", "---:|".repeat(columns.len()));
    let limits: Vec<_> = table.fields.iter().map(|(_, limit)| number(*limit, 2)).collect();
    let _ = writeln!(out, "| *limit* | | {} | 1.00 | |", limits.join(" | "));
    for row in &table.rows {
        let cells: Vec<_> = row.cells.iter().map(|cell| time(*cell)).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            carriers(&row.transports),
            row.shape,
            cells.join(" | "),
            number(row.x_limit, 2),
            number(row.ping_p99_s, 2)
        );
    }
    for (shape, reason) in &table.unfit {
        let _ = writeln!(out, "\nNot there: {shape} ({reason}).");
    }
}

/// The transports of a row; [`ALL_TCP`] for all of TCP.
fn carriers(transports: &[&str]) -> String {
    let all = TRANSPORTS.iter().filter(|transport| !transport.is_quic());
    if all.map(|transport| transport.name).eq(transports.iter().copied()) {
        return ALL_TCP.to_owned();
    }
    transports.join(", ")
}

/// The heading of a transfer's column.
fn column(field: &Field) -> String {
    if field.loss == OWN_LOSS { field.size.to_owned() } else { format!("{}, {}", field.size, field.loss) }
}

/// A cell: the median with its interval.
fn time(cell: Option<&Cell>) -> String {
    cell.and_then(|cell| cell.time_s).map_or("–".to_owned(), with_interval)
}

fn with_interval(time: Median) -> String {
    let shown = |seconds: f64| if seconds < 99.95 { format!("{seconds:.2}") } else { format!("{seconds:.0}") };
    match (time.low, time.high) {
        (Some(low), Some(high)) => format!("{} ({}–{})", shown(time.median), shown(low), shown(high)),
        _ => shown(time.median),
    }
}

fn conduct(out: &mut String, all: &[Conduct]) {
    if all.is_empty() {
        return;
    }
    out.push_str(
        "
## How they behave

RFC 9743 lists criteria for evaluating a congestion control. They are measured here end to end on the link of 10/2 Mbit/s and 650 ms, whose
queue holds 650 ms. Unless stated otherwise, connections last 120 s and begin within a second. Values are medians over seeds with 95 % intervals.

- left to CUBIC (§5.2.1, deployed controls): the share of a linux-cubic connection beside one of this transport; 0.5 is even
- Jain (§5.1.4, fairness among its own): Jain's index of two connections; 1 is even, 0.5 means that one has everything
- later (§5.1.4, convergence): the share of a connection that begins 40 s after one of the same transport, in the last 40 s; 0.5 is even
- ping (§5.1.2, bufferbloat, and §5.2.2, real-time traffic): p99 of a ping beside one connection; 0.65 s on the idle link
- dropped (§5.1.3, losses): the share of packets that the queue drops, one connection alone
- of eight (§5.1.1, congestion collapse): the same for eight connections
- kept (§5.1.3): data that one connection delivers with 1 % random loss, as a share of its data without loss
- short (§5.2.3, short beside long flows): time of a 2 MB linux-cubic transfer that begins 40 s after one connection of this transport;
  80 means that it did not finish
- FQ-CoDel (§7.1, active queue management): data that one connection delivers over such a queue, as a share of its data without
- longer (§7.3, varying delay, and §7.9, sudden changes): the same if the delay grows by 200 ms after 60 s
- outage (§7.8, transient events): the same with an outage of 5 s after 60 s; the time alone allows 0.96
- reordered (§7.7): the same if one packet in a hundred is late by 40 others

The columns of 2 MB above show short flows alone (§5.1.5), and all of this is over drop-tail queues (§6.1) and a high delay (§7.5), with
random loss as a wireless path has it (§6.4). What is left is not measured:

- §5.3 asks for words: a proposal \"MUST clearly explain any deviations from [RFC2914] and [RFC7141]\" (§5.3.1) and \"MUST discuss whether it
  allows for incremental deployment in the targeted environment\" (§5.3.2). A run has no answer.
- §6.2 is about algorithms that rely \"on explicit signals from the path\". No queue here marks; [L4S](specs/l4s.md) has tests of its own.
- §6: \"The evaluation of each scenario SHOULD occur over a representative range of bandwidths, delays, and queue depths\". The behaviour is
  measured on one link. `--conduct` has no other. Wired paths (§6.3) and data centers (§7.11) are not the subject of this board.
- §7.2: no link has a circuit breaker. The columns of dropped packets show what one would see.
- §7.4: a run does not measure the power or the memory of a node.
- §7.6: \"non-compliant senders, receivers, or routers\" are not simulated here. Packet scripts play some of them.
- §7.10: no transport here uses several paths.

Endless connections have no repair symbols, so a coded transport behaves like the transport it is based on.

| transport | left to CUBIC | Jain | later | ping (s) | dropped (%) | of eight (%) | kept | short (s) | FQ-CoDel | longer | outage | reordered |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
",
    );
    for one in all {
        let shown = |median: Option<Median>| median.map_or("–".to_owned(), with_interval);
        let percent = |median: Option<Median>| {
            let times = |value: f64| 100.0 * value;
            shown(median.map(|of| Median {
                median: times(of.median),
                low: of.low.map(times),
                high: of.high.map(times),
            }))
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            one.transport,
            shown(one.share_of_cubic),
            shown(one.jain),
            shown(one.share_of_later),
            shown(one.ping_p99_s),
            percent(one.dropped),
            percent(one.dropped_of_many),
            shown(one.kept_under_loss),
            shown(one.short_beside_s),
            shown(one.kept_under_fq_codel),
            shown(one.kept_over_longer_path),
            shown(one.kept_in_outage),
            shown(one.kept_under_reordering)
        );
    }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.decimals$}"))
}
