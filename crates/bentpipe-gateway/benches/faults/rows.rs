//! The demands, in the order of their table.

mod away;
mod clocks;
mod dip;
mod floods;
mod memory;
mod oom;
mod peer;
mod replays;
mod soak;
mod terminals;

use self::soak::Form;
use crate::pair::{Line, inside};
use crate::{Measured, Row, older};

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "strangers",
        demand: "10 000 datagrams of strangers",
        bar: "not one byte out",
        measure: peer::strangers,
    },
    Row {
        name: "return",
        demand: "the peer's restart, after kill -9",
        bar: "new connections within 3 s",
        measure: peer::returns,
    },
    Row {
        name: "oom",
        demand: "either box killed for its memory, in the middle of transfers",
        bar: "serves within 3 s, 0 wrong bytes, said",
        measure: oom::killed,
    },
    Row {
        name: "stopped",
        demand: "SIGSTOP of a box for 30 s (short form: 8 s)",
        bar: "serves again within 20 s, 0 wrong bytes",
        measure: away::stopped,
    },
    Row {
        name: "suspended",
        demand: "either box suspended for 10 minutes (short form: 8 s)",
        bar: "serves again within 20 s, 0 wrong, both say why",
        measure: away::suspended,
    },
    Row {
        name: "mtu",
        demand: "MTU of the way 1280 to 1499, changed in mid-transfer",
        bar: "1 MB arrives, no stall over 10 s",
        measure: peer::mtu,
    },
    Row {
        name: "resets",
        demand: "one host: 5000 connect-and-reset per second on 1 Mbit/s",
        bar: "others' bulk 70 %, +8 MB, recovered in 2 s",
        measure: floods::resets,
    },
    Row {
        name: "silent",
        demand: "500 SYN per second to a silent address for 120 s",
        bar: "99 % of others' connections accepted",
        measure: floods::silent,
    },
    Row {
        name: "priority",
        demand: "EF, port 53 and ICMP at twice the rate, in `link`",
        bar: "bulk keeps 50 %",
        measure: floods::priority,
    },
    Row {
        name: "dip",
        demand: "link of 600 ms: 20 -> 2 -> 20 Mbit/s for 20 s, in `split`",
        bar: "1.7 Mbit/s after 3 s; 95 % 5 s after it",
        measure: |is_short| dip::dip(is_short, false),
    },
    Row {
        name: "dip-link",
        demand: "the same in `link`",
        bar: "1.7 Mbit/s after 3 s; 95 % 5 s after it",
        measure: |is_short| dip::dip(is_short, true),
    },
    Row {
        name: "older",
        demand: "older connections at start, stop, reload, return",
        bar: "none of 1000 harmed",
        measure: older,
    },
    Row {
        name: "hub-cost",
        demand: "hub with 200 terminals, idle (short form: 20)",
        bar: "500 kB and 0.1 % of a core each",
        measure: |is_short| terminals::cost(is_short, false),
    },
    Row {
        name: "hub-storm",
        demand: "hub with 200 terminals: restart after kill -9",
        bar: "all up within 20 s",
        measure: |is_short| terminals::storm(is_short, false),
    },
    Row {
        name: "hub-flood",
        demand: "hub with 200 terminals: one takes all it can",
        bar: "others' bulk 70 %",
        measure: |is_short| terminals::flood(is_short, false),
    },
    Row {
        name: "hub-cost-link",
        demand: "the same in `link`, idle",
        bar: "500 kB and 0.1 % of a core each",
        measure: |is_short| terminals::cost(is_short, true),
    },
    Row {
        name: "hub-storm-link",
        demand: "the same in `link`: restart after kill -9",
        bar: "all up within 20 s",
        measure: |is_short| terminals::storm(is_short, true),
    },
    Row {
        name: "hub-flood-link",
        demand: "the same in `link`: one takes all it can",
        bar: "others' bulk 70 %",
        measure: |is_short| terminals::flood(is_short, true),
    },
    Row {
        name: "replays",
        demand: "a genuine init, 10 000 times a second, from the peer's address",
        bar: "live tunnel holds 600 s; restart up in 5 s",
        measure: replays::replays,
    },
    Row {
        name: "clocks",
        demand: "clock ±1 h and ±10 years, running and over a restart, either box",
        bar: "no outage, one line of log",
        measure: clocks::clocks,
    },
    Row {
        name: "keys",
        demand: "/proc/PID/mem of both boxes after handshakes and traffic",
        bar: "one copy of the private key",
        measure: memory::keys,
    },
    Row {
        name: "memory",
        demand: "100 Mbit/s of hosts, 2 s, the other box stopped, `memory` 8 MB",
        bar: "base + 1.2 x `memory`",
        measure: memory::flood,
    },
    Row {
        name: "soak",
        demand: "`split`, 200 connections, a fault every minute, one hour",
        bar: "0 wrong bytes, no stall over 60 s",
        measure: |is_short| soak::run(Form::long(is_short, "50 Mbit/s", 7), false),
    },
    Row {
        name: "soak-link",
        demand: "the same in `link`",
        bar: "0 wrong bytes, no stall over 60 s",
        measure: |is_short| soak::run(Form::long(is_short, "50 Mbit/s", 7), true),
    },
    Row {
        name: "soak-uplink",
        demand: "`uplink`, 200 connections, a fault every minute, half an hour",
        bar: "0 wrong bytes, no stall over 60 s",
        measure: |is_short| soak::run_one_box(Form::long(is_short, "200 Mbit/s", 6), false),
    },
    Row {
        name: "soak-kernel",
        demand: "the same with the kernel's sender",
        bar: "0 wrong bytes, no stall over 60 s",
        measure: |is_short| soak::run_one_box(Form::long(is_short, "200 Mbit/s", 6), true),
    },
    Row {
        name: "volume",
        demand: "100 GB through `split`, a fault every minute (short form: 1 GB)",
        bar: "0 wrong bytes, no stall over 60 s",
        measure: |is_short| soak::run(Form::wide(is_short), false),
    },
    Row {
        name: "volume-link",
        demand: "the same through `link`",
        bar: "0 wrong bytes, no stall over 60 s",
        measure: |is_short| soak::run(Form::wide(is_short), true),
    },
    Row {
        name: "volume-uplink",
        demand: "the same through `uplink`",
        bar: "0 wrong bytes, no stall over 60 s",
        measure: |is_short| soak::run_one_box(Form::wide(is_short), false),
    },
    Row {
        name: "volume-kernel",
        demand: "the same through `uplink` with the kernel's sender",
        bar: "0 wrong bytes, no stall over 60 s",
        measure: |is_short| soak::run_one_box(Form::wide(is_short), true),
    },
    Row { name: "guard", demand: "kill -9 with without_peer = \"refuse\"", bar: "no SYN in clear", measure: guard },
    Row { name: "unit", demand: "systemd-analyze security", bar: "3.0 or less", measure: unit },
];

/// True if both boxes say that the link is up, and a new connection is answered.
fn serves(line: &Line, server: std::net::SocketAddr) -> bool {
    let is_up = |name: &&str| line.status(name).is_some_and(|status| status["up"] == true);
    ["near", "far"].iter().all(is_up)
        && line.connect(server).and_then(|mut stream| crate::pair::asks(&mut stream)).is_ok()
}

fn older(is_short: bool) -> Measured {
    let count = if is_short { 100 } else { 1000 };
    let harmed = [
        older::pair(count),
        older::one_box("max_streams = 16384\n", count),
        older::one_box("sender = \"kernel\"\ncongestion = \"cubic\"\n", count),
    ];
    let [split, uplink, kernel] = harmed;
    let text = format!("of {count} each: split {split}, uplink {uplink}, kernel's sender {kernel}");
    Measured { text, is_met: harmed == [0; 3] }
}

/// SYNs that the near box forwards in clear while its gateway is dead, is cleaned up after and starts again.
fn guard(is_short: bool) -> Measured {
    let rounds = if is_short { 1 } else { 10 };
    let line = Line::new("100 Mbit/s");
    line.edit("near", "capture = [\"lan\"]", "capture = [\"lan\"]\nwithout_peer = \"refuse\"");
    for command in [
        "nft add table inet watch",
        "nft add chain inet watch forward { type filter hook forward priority 0 ; }",
        "nft add rule inet watch forward iifname lan tcp flags syn counter",
    ] {
        inside(&line.near, command);
    }
    let server = line.serve(80, crate::pair::echo);
    let _far = line.start("far", 1024);
    let mut near = line.start("near", 1024);
    line.wait_until_up(&["near", "far"], true);
    let mut tries = 0;
    for _ in 0..rounds {
        near.0.kill().expect("it runs");
        near.0.wait().expect("it ends");
        for _ in 0..20 {
            tries += u32::from(line.connect(server).is_err());
        }
        let path = line.folder.path().join("near.toml");
        inside(&line.near, &format!("{} down --keep-guard {}", env!("CARGO_BIN_EXE_bentpipe-gateway"), path.display()));
        near = line.start("near", 1024);
        for _ in 0..20 {
            tries += u32::from(line.connect(server).is_err());
        }
        line.wait_until_up(&["near"], true);
    }
    let shown = inside(&line.near, "nft list chain inet watch forward");
    let leaked = shown.split_whitespace().skip_while(|&word| word != "packets").nth(1).map(str::to_owned);
    let leaked: u64 = leaked.and_then(|count| count.parse().ok()).expect("a counter");
    Measured { text: format!("{leaked} in clear; {tries} refused, {rounds} kills"), is_met: leaked == 0 && tries > 20 }
}

fn unit(_: bool) -> Measured {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/bentpipe-gateway@.service");
    let mut analyze = std::process::Command::new("systemd-analyze");
    let Ok(output) = analyze.args(["security", "--offline=true", "--no-pager", "--threshold=30", unit]).output() else {
        return Measured { text: "systemd-analyze is not installed".to_owned(), is_met: false };
    };
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let level = shown.rsplit("service: ").next().unwrap_or_default().split_whitespace().next().unwrap_or_default();
    Measured { text: level.to_owned(), is_met: output.status.success() }
}
