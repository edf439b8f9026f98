//! The metrics of all shapes, for the reference.

use std::collections::BTreeMap;

use bentpipe_engine::units::{Duration, Rate, Time};

use crate::readings::listener::Unqueued;
use crate::readings::{Readings, Value};
use crate::relay::RelayStats;
use crate::run::GatewayStats;
use crate::split::{SplitStats, Waiting};
use crate::trouble::Refusals;
use crate::tunnel::{PrivateKey, TunnelConfig};
use crate::uplink::UplinkStats;
use crate::{Carrier, Hub, Satellite, for_streams};

/// A metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in Prometheus.
    pub name: &'static str,
    /// Its type in Prometheus: `counter` or `gauge`.
    pub kind: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Its path in the JSON of `status`.
    pub status: String,
    /// Its label besides `gateway` and `shape`, if it has one.
    pub label: Option<&'static str>,
    /// The shapes that have it. `uplink` stands for bentpipe's own sender, `uplink-kernel` for the kernel's.
    pub shapes: Vec<&'static str>,
}

/// All metrics, sorted by name. A metric whose meaning differs between shapes appears once per meaning.
///
/// # Errors
/// Fails if `/proc/self` cannot be read.
pub fn metrics() -> std::io::Result<Vec<Metric>> {
    let mut found: BTreeMap<(&'static str, String, &'static str), Metric> = BTreeMap::new();
    for readings in samples()? {
        for reading in readings.list() {
            let status = match reading.table {
                "" => reading.key.to_owned(),
                table => format!("{table}.{}", reading.key),
            };
            let metric = found.entry((reading.metric, status.clone(), reading.help)).or_insert_with(|| Metric {
                name: reading.metric,
                kind: reading.value.kind(),
                help: reading.help,
                status,
                label: match reading.value {
                    Value::Text(_) => Some(reading.key),
                    _ => reading.label.as_ref().map(|(name, _)| *name),
                },
                shapes: Vec::new(),
            });
            if !metric.shapes.contains(&readings.shape()) {
                metric.shapes.push(readings.shape());
            }
        }
    }
    Ok(found.into_values().collect())
}

/// The values of a gateway of each shape at its start.
fn samples() -> std::io::Result<[Readings; 4]> {
    let rate = Rate::from_bits_per_second(1_000_000).expect("not zero");
    let mut all = ["split", "link", "uplink", "uplink-kernel"].map(|shape| Readings::new("", shape));
    for readings in &mut all {
        readings.add_loop(&GatewayStats::default());
    }
    let [split, link, uplink, relay] = &mut all;
    for readings in [&mut *split, &mut *link] {
        readings.add_hub(&Hub::new(None), &Refusals::default());
        readings.add_carrier(Time::ZERO, &carrier(rate));
        readings.add_dropped(0);
        readings.add_spent(Some(Duration::ZERO));
    }
    split.add_split(&SplitStats::default(), &Waiting { unsent: 0, held: 0, memory: 0 });
    split.add_split_common(0, 0);
    split.add_forbidden("split", 0);
    link.add_forbidden("link", 0);
    uplink.add_forbidden("uplink", 0);
    relay.add_forbidden("uplink", 0);
    link.add_link(0, 0, 0);
    link.add_overruns("link", Some(0));
    link.add_link_peer(0, 0, 0);
    uplink.add_uplink(rate, &UplinkStats::default(), 0, 0);
    uplink.add_overruns("uplink", Some(0));
    relay.add_relay(rate, 0, &RelayStats::default());
    for readings in [&mut *split, &mut *relay] {
        readings.add_unqueued(Unqueued::default());
    }
    for readings in &mut all {
        readings.add_interfaces(&[]);
        readings.add_age();
        readings.add_process()?;
    }
    Ok(all)
}

fn carrier(rate: Rate) -> Carrier {
    let span = Duration::from_secs(1);
    let [private, other] = [PrivateKey::generate(), PrivateKey::generate()];
    let tunnel = TunnelConfig {
        keepalive: span,
        dead_after: span.saturating_mul(3),
        ..TunnelConfig::new(private, other.public(), None)
    };
    let satellite =
        Satellite { rate, round_trip: span, path_mtu: 1500, over_ipv6: false, reordering: 0, shared: false };
    Carrier::new(tunnel, for_streams(&satellite), Time::ZERO)
}
