//! A peer, for log lines about it.

use std::fmt;
use std::sync::Arc;

use bentpipe_engine::units::{Duration, Time};

use crate::carrier::{Carrier, PathChange};
use crate::log::{self, LeftOut, Limit};
use crate::shortfall::Shortfall;
use crate::tunnel::{Event, Note};

/// State for the log lines about a peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: Name,
    /// True if nothing has been said since its link went down.
    is_down: bool,
    /// Limits lines saying that its link is up although it was not down.
    ups: Limit,
    /// Limits lines about its path MTU.
    pub(super) paths: Limit,
    /// Whether its link carries what the settings say.
    shortfall: Shortfall,
}

/// The name of a peer in log lines; `None` if there is only one peer.
#[derive(Clone, Debug)]
pub(super) struct Name(pub(super) Option<Arc<str>>);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => write!(f, "peer {name}"),
            None => f.write_str("the peer"),
        }
    }
}

impl Peer {
    /// A peer whose link is down.
    pub(super) fn new(name: Name) -> Self {
        let limit = Limit::default();
        Peer { name, is_down: true, ups: limit.clone(), paths: limit, shortfall: Shortfall::default() }
    }

    /// Takes the sample of a second of its link's rate.
    pub(super) fn look(&mut self, carrier: &Carrier) {
        let Some((told, used)) = carrier.provisioned() else { return };
        if let Some(said) = self.shortfall.look(told, used) {
            let key = if self.name.0.is_some() { "peers.rate" } else { "satellite.rate" };
            log::line(said.line(&self.name, key));
        }
    }

    /// Logs a line for each change of a link. A link goes down after a silence of `dead_after`, and its return is
    /// always logged. Lines about a peer that starts over without such a silence are limited, because it could do so
    /// many times a second.
    pub(super) fn say(&mut self, now: Time, carrier: Option<&Carrier>, event: Event) {
        let at = carrier.and_then(|carrier| carrier.tunnel().endpoint());
        let at = at.map_or_else(|| "an unknown address".to_owned(), |at| at.to_string());
        let name = &self.name;
        let other = carrier.and_then(|carrier| carrier.tunnel().other_shape());
        if let (Event::Down, Some(other)) = (event, other) {
            // It could come back with one shape and the other many times a second, too.
            let Some(left_out) = self.ups.take(now) else { return };
            return log::line(format_args!(
                "{name} at {at} comes back with the shape `{other}`: the link is down{left_out}"
            ));
        }
        if event == Event::Down {
            self.is_down = true;
            // The event comes at the end of `dead_after`, or later if this process was stopped or the machine slept.
            let silence = carrier.map_or(Duration::ZERO, |carrier| now.saturating_since(carrier.tunnel().heard_at()));
            return log::line(format_args!(
                "{name} at {at} has been silent for {} s (`dead_after`): the link is down until it answers",
                silence.as_secs_f64().round()
            ));
        }
        let left_out = if std::mem::take(&mut self.is_down) { Some(LeftOut::default()) } else { self.ups.take(now) };
        let Some(left_out) = left_out else { return };
        log::line(format_args!("{name} at {at} is up{left_out}"));
    }
}

/// A note of a tunnel, with its peer's name.
pub(super) struct Said<'a>(pub(super) &'a Name, pub(super) Note);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.0 {
            Some(name) => write!(f, "peer {name}: {}", self.1),
            None => self.1.fmt(f),
        }
    }
}

/// The line about a change of a peer's path.
pub(super) fn path_line(name: &Name, change: &PathChange) -> String {
    let PathChange { mtu, black_hole, .. } = change;
    match (black_hole, &name.0) {
        (true, _) => {
            format!("longer datagrams to {name} are lost: the path MTU is {mtu} bytes until a larger one is found")
        }
        (false, None) => format!("the path MTU is {mtu} bytes"),
        (false, Some(_)) => format!("the path MTU to {name} is {mtu} bytes"),
    }
}
