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
