//! Collects the loop's readings for the threads that show them. In parts: those of thousands of peers would hold packets up.

use std::sync::{Arc, Mutex};

use bentpipe_engine::units::{Duration, Time};

use super::backlog::Backlog;
use super::interfaces::{self, Watched};
use super::prepare;
use crate::run::Collection;
use crate::settings::GatewayFile;
use crate::{Loop, Published, Readings, Work};

/// Peers whose readings are collected at once: a millisecond of work.
const PEERS_AT_ONCE: usize = 100;
/// Old readings that are dropped at once: those of some hundred peers.
const READINGS_AT_ONCE: usize = 1 << 15;
/// Between two collections, the loop does other work for this many times as long, but no longer than a stuck loop is tolerated. The
/// readings of 30 000 peers take 0.4 s.
const REST: u64 = 50;
const MAX_REST: Duration = Duration::from_secs(8);

pub(super) struct Collector {
    name: String,
    published: Published,
    /// When the next collection begins.
    due: Time,
    /// What has been collected, and the time that it took.
    collection: Option<(Collection, Duration)>,
    /// Replaced readings that are still to be dropped.
    old: Readings,
    needed: Vec<String>,
    watched: Watched,
    backlog: Option<Backlog>,
}

impl Collector {
    pub(super) fn new<W: Work>(file: &GatewayFile, gateway: &mut Loop<W>) -> Self {
        let mut collector = Collector {
            name: file.name.clone(),
            published: Published::new(Mutex::new(Arc::new(gateway.readings(&file.name)))),
            due: gateway.now(),
            collection: None,
            old: Readings::default(),
            needed: interfaces::needed(file),
            watched: Watched::new(),
            backlog: Backlog::new(prepare::listens(file)),
        };
        collector.turn(gateway);
        collector
    }

    /// A function that other threads call for the latest readings.
    pub(super) fn source(&self) -> impl Fn() -> Readings + Send + Sync + use<> {
        let published = self.published.clone();
        move || {
            let latest = published.lock().map(|readings| readings.clone()).unwrap_or_default();
            let mut readings = Readings::over(latest);
            readings.add_age();
            // Without /proc, these readings are missing.
            let _ = readings.add_process();
            readings
        }
    }

    /// Does the next part of what is due. If more is, the loop is asked to call again soon.
    pub(super) fn turn<W: Work>(&mut self, gateway: &mut Loop<W>) {
        let begun = gateway.now();
        if self.old.drop_some(READINGS_AT_ONCE) {
            return gateway.look_soon();
        }
        if self.collection.is_none() && begun < self.due {
            return;
        }
        if let Some((stale, _)) = self.collection.take_if(|(collection, _)| !gateway.is_current(collection)) {
            // It is dropped in parts, and then another one begins.
            self.old = stale.readings;
            return gateway.look_soon();
        }
        let (mut collection, before) = self.collection.take().unwrap_or_else(|| self.begin(gateway));
        let has_all = gateway.collect(&mut collection, PEERS_AT_ONCE);
        let took = before + gateway.now().saturating_since(begun);
        if has_all {
            self.publish(collection.readings, gateway.now());
            self.due = gateway.now() + took.saturating_mul(REST).min(MAX_REST);
        } else {
            self.collection = Some((collection, took));
        }
        if !has_all || self.old.drop_some(READINGS_AT_ONCE) {
            gateway.look_soon();
        }
    }

    fn begin<W: Work>(&self, gateway: &Loop<W>) -> (Collection, Duration) {
        let mut collection = gateway.begin_readings(&self.name);
        if let Ok(published) = self.published.lock() {
            collection.readings.reserve_as(&published);
        }
        (collection, Duration::ZERO)
    }

    fn publish(&mut self, mut readings: Readings, now: Time) {
        readings.add_interfaces(self.watched.look(&self.needed));
        if let Some(backlog) = &mut self.backlog {
            backlog.look(now, &mut readings);
        }
        if let Ok(mut published) = self.published.lock() {
            let replaced = std::mem::replace(&mut *published, Arc::new(readings));
            // If a thread still reads them, it drops them.
            self.old = Arc::try_unwrap(replaced).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tunnel::{PrivateKey, TunnelConfig};
    use crate::tunnelled::tests::idle;
    use crate::{PeerConfig, Value};

    /// A reload in the middle of a collection: a peer whose values were there came once more from its new place, and both were added up.
    #[test]
    fn a_reload_begins_the_collection_anew() {
        let (mut gateway, link) = idle();
        let private = PrivateKey::generate();
        let peer = |n: usize| {
            let tunnel = TunnelConfig::new(private.clone(), PrivateKey::generate().public(), None);
            PeerConfig { name: Some(format!("boat-{n}").into()), ..PeerConfig::alone(tunnel, link.clone()) }
        };
        let peers: Vec<_> = (0..2 * PEERS_AT_ONCE).map(peer).collect();
        let keys = peers.iter().map(|peer| peer.terminal.tunnel.peer).collect::<Vec<_>>();
        peers.into_iter().for_each(|peer| gateway.add(peer).expect("a key of its own"));
        let key = keys[0];
        let text = format!(
            "name = \"hub\"\n[tunnel]\nprivate_key = \"key\"\n[satellite]\nrate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\n[split]\n\
             [[peers]]\nname = \"a\"\nkey = \"{key}\"\nprefixes = [\"10.1.0.0/24\"]\n"
        );
        let file = GatewayFile::parse(&text, "hub.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let mut collector = Collector::new(&file, &mut gateway);
        let source = collector.source();
        while collector.collection.is_none() {
            collector.turn(&mut gateway);
        }
        // Both get other keys, and each the other's place.
        let last = 2 * PEERS_AT_ONCE - 1;
        [0, last].iter().for_each(|&n| _ = gateway.remove(&keys[n]));
        [last, 0].iter().for_each(|&n| gateway.add(peer(n)).expect("a key of its own"));
        while collector.collection.is_some() {
            collector.turn(&mut gateway);
        }
        let readings = source();
        let up = readings.parts().into_iter().flatten().filter(|reading| reading.key == "link_up");
        let names: Vec<_> = up.map(|reading| reading.peer.clone()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 2 * PEERS_AT_ONCE);
        assert_eq!(names.len(), 2 * PEERS_AT_ONCE, "none is there twice");
        assert!(
            readings
                .parts()
                .into_iter()
                .flatten()
                .any(|reading| reading.value == Value::Level(2 * PEERS_AT_ONCE as u64))
        );
    }
}
