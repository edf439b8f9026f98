//! Congestion control: ACK samples and loss reports in, a window and a pacing rate out.
//!
//! [`Window`] holds the numbers that every control sets and the sender reads. Each control has its own file with an
//! implementation of [`CongestionRules`], and a row in `congestion_controls!` in `variant.rs`.
//! `docs/howto/add-a-congestion-control.md` walks through it.

mod bbr;
mod bbr3;
mod cubic;
mod cubic_linux;
mod fixed;
mod hybla;
#[cfg(feature = "ns2")]
mod ns2;
#[cfg(test)]
mod paced;
mod prague;
mod reduction;
mod reno;
mod resuming;
mod rules;
mod sample;
mod spread;
mod unused;
mod usage;
mod vegas;
mod westwood;
mod window;

use alloc::boxed::Box;

pub(in crate::tcp) use self::rules::{CongestionRules, Properties};
pub(in crate::tcp) use self::sample::{AckSample, Delivered, FoundLost, Marks};
pub(in crate::tcp) use self::unused::Unused;
use self::usage::Usage;
pub(in crate::tcp) use self::window::Window;
use super::config::TcpConfig;
use super::loss::{FoundBy, LossReport};
use super::pacing::{self, Pacing};
use super::startup::SlowStart;
use super::variant::{CongestionControl, Growth, Startup, congestion_controls};
use crate::units::{Duration, Rate, Time};

/// Where a control's state is kept: in every connection, or behind a pointer if it is large.
type Inline<C> = C;
type Boxed<C> = Box<C>;

/// Defines the enum of all controls, which forwards each call to the control that it holds.
macro_rules! controls {
    ($($(#[$doc:meta])* $name:ident($kept:ident<$control:ty>) = $word:literal: $summary:literal,)+) => {
        #[derive(Clone, Debug)]
        enum Control {
            $($(#[$doc])* $name($kept<$control>),)+
            /// A constant window.
            Fixed(fixed::Fixed),
            /// One of the other controls, on a path that an earlier connection has measured.
            Resuming(Box<resuming::Resuming>),
            #[cfg(test)]
            Paced(paced::Paced),
        }

        impl Control {
            fn new(config: &TcpConfig) -> Control {
                match (config.variant.startup, config.variant.congestion) {
                    (Startup::FixedWindow(segments), _) => Control::Fixed(fixed::Fixed::new(segments)),
                    $((Startup::SlowStart, CongestionControl::$name) => {
                        Control::$name(<$control>::new(config).into())
                    })+
                }
            }

            fn properties(&self) -> Properties {
                match self {
                    $(Control::$name(_) => <$control>::PROPERTIES,)+
                    Control::Fixed(_) => fixed::Fixed::PROPERTIES,
                    Control::Resuming(control) => control.properties(),
                    #[cfg(test)]
                    Control::Paced(_) => paced::Paced::PROPERTIES,
                }
            }

            #[inline(always)]
            fn on_ack(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
                match self {
                    $(Control::$name(control) => control.on_ack(window, start, ack),)+
                    Control::Fixed(control) => control.on_ack(window, start, ack),
                    Control::Resuming(control) => control.on_ack(window, start, ack),
                    #[cfg(test)]
                    Control::Paced(control) => control.on_ack(window, start, ack),
                }
            }

            #[inline(always)]
            fn on_unused(&mut self, window: &mut Window, start: &mut SlowStart, ack: &AckSample) {
                match self {
                    $(Control::$name(control) => control.on_unused(window, start, ack),)+
                    Control::Fixed(control) => control.on_unused(window, start, ack),
                    Control::Resuming(control) => control.on_unused(window, start, ack),
                    #[cfg(test)]
                    Control::Paced(control) => control.on_unused(window, start, ack),
                }
            }

            fn on_delivered(&mut self, window: &mut Window, seen: &Delivered) {
                match self {
                    $(Control::$name(control) => control.on_delivered(window, seen),)+
                    Control::Fixed(control) => control.on_delivered(window, seen),
                    Control::Resuming(control) => control.on_delivered(window, seen),
                    #[cfg(test)]
                    Control::Paced(control) => control.on_delivered(window, seen),
                }
            }

            fn on_found_lost(&mut self, window: &mut Window, lost: &FoundLost) {
                match self {
                    $(Control::$name(control) => control.on_found_lost(window, lost),)+
                    Control::Fixed(_) | Control::Resuming(_) => {}
                    #[cfg(test)]
                    Control::Paced(_) => {}
                }
            }

            fn on_restart_from_idle(&mut self, window: &mut Window, now: Time) {
                match self {
                    $(Control::$name(control) => control.on_restart_from_idle(window, now),)+
                    Control::Fixed(_) | Control::Resuming(_) => {}
                    #[cfg(test)]
                    Control::Paced(_) => {}
                }
            }

            #[inline(always)]
            fn on_idle(&mut self, now: Time, idle: Duration) {
                match self {
                    $(Control::$name(control) => control.on_idle(now, idle),)+
                    Control::Resuming(control) => control.on_idle(now, idle),
                    Control::Fixed(_) => {}
                    #[cfg(test)]
                    Control::Paced(_) => {}
                }
            }

            fn holds_back(&self) -> bool {
                match self {
                    $(Control::$name(control) => control.holds_back(),)+
                    Control::Fixed(_) | Control::Resuming(_) => false,
                    #[cfg(test)]
                    Control::Paced(_) => false,
                }
            }

            fn on_loss(&mut self, window: &mut Window, loss: &LossReport) {
                match self {
                    $(Control::$name(control) => control.on_loss(window, loss),)+
                    Control::Fixed(control) => control.on_loss(window, loss),
                    Control::Resuming(control) => control.on_loss(window, loss),
                    #[cfg(test)]
                    Control::Paced(control) => control.on_loss(window, loss),
                }
            }

            fn on_marks(&mut self, window: &mut Window, marks: &Marks) {
                match self {
                    $(Control::$name(control) => control.on_marks(window, marks),)+
                    Control::Fixed(control) => control.on_marks(window, marks),
                    Control::Resuming(control) => control.on_marks(window, marks),
                    #[cfg(test)]
                    Control::Paced(control) => control.on_marks(window, marks),
                }
            }

            fn restart(&mut self, window: &mut Window, segments: u32) {
                match self {
                    $(Control::$name(control) => control.restart(window, segments),)+
                    Control::Fixed(control) => control.restart(window, segments),
                    Control::Resuming(control) => control.restart(window, segments),
                    #[cfg(test)]
                    Control::Paced(control) => control.restart(window, segments),
                }
            }

            fn on_recovered(&mut self, window: &mut Window, flight: u64) {
                match self {
                    $(Control::$name(control) => control.on_recovered(window, flight),)+
                    Control::Fixed(control) => control.on_recovered(window, flight),
                    Control::Resuming(control) => control.on_recovered(window, flight),
                    #[cfg(test)]
                    Control::Paced(control) => control.on_recovered(window, flight),
                }
            }

            fn on_spurious_timeout(&mut self, window: &mut Window, cwnd: u64, ssthresh: u64) {
                match self {
                    $(Control::$name(control) => control.on_spurious_timeout(window, cwnd, ssthresh),)+
                    Control::Fixed(control) => control.on_spurious_timeout(window, cwnd, ssthresh),
                    Control::Resuming(control) => control.on_spurious_timeout(window, cwnd, ssthresh),
                    #[cfg(test)]
                    Control::Paced(control) => control.on_spurious_timeout(window, cwnd, ssthresh),
                }
            }

            #[inline(always)]
            fn pacing_rate(&self, window: &Window) -> Option<Rate> {
                match self {
                    $(Control::$name(control) => control.pacing_rate(window),)+
                    Control::Fixed(control) => control.pacing_rate(window),
                    Control::Resuming(control) => control.pacing_rate(window),
                    #[cfg(test)]
                    Control::Paced(control) => control.pacing_rate(window),
                }
            }
        }

        impl CongestionControl {
            /// The name of the control, with the growth per ACK if `growth` affects it.
            pub fn describe(self, growth: Growth) -> alloc::string::String {
                match self {
                    $(CongestionControl::$name => <$control>::describe(growth),)+
                }
            }

            /// True if the control measures the rate of delivery, for which it needs RACK
            /// ([`PipeForm::Rack`](super::variant::PipeForm::Rack)). With another recovery it gets no samples.
            pub fn needs_rack(self) -> bool {
                match self {
                    $(CongestionControl::$name => <$control>::PROPERTIES.measures_rate,)+
                }
            }
        }
    };
}

congestion_controls!(controls);

/// The rate from which a host derives the size of its packets, before it is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::tcp) enum PacketRate {
    /// Set by the control.
    Set(Rate),
    Paced(Rate),
    /// This many bytes per smoothed round trip.
    PerRoundTrip(f64, Duration),
}

impl PacketRate {
    /// The rate; `None` if the round trip is zero.
    pub(in crate::tcp) fn rate(self) -> Option<Rate> {
        match self {
            PacketRate::Set(rate) | PacketRate::Paced(rate) => Some(rate),
            PacketRate::PerRoundTrip(bytes, srtt) => spread::per_round_trip(bytes, srtt),
        }
    }

    /// Minimum number of segments in a packet, besides other bounds.
    pub(in crate::tcp) fn min_segments(self) -> u64 {
        match self {
            PacketRate::Set(rate) => pacing::min_together(rate),
            PacketRate::Paced(_) | PacketRate::PerRoundTrip(..) => pacing::MIN_TOGETHER,
        }
    }
}

/// The window of a connection and the control that sets it.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Congestion {
    pub(in crate::tcp) window: Window,
    control: Control,
    start: SlowStart,
    /// True if the control also receives ACKs while the window is not in use.
    grows_unused: bool,
    /// How the window is used, if that counts as in Linux.
    usage: Option<Box<Usage>>,
    /// The control's properties, kept here so that the many controls that do not pace are not called for each segment.
    properties: Properties,
    /// Pacing for a control that sets no rate, if the settings ask for it.
    spread: Option<Box<spread::Spread>>,
    /// Upper bound of the pacing rate.
    max_rate: Option<Rate>,
}

impl Congestion {
    pub(in crate::tcp) fn new(config: &TcpConfig, grows_unused: bool) -> Self {
        let segments = match config.variant.startup {
            Startup::SlowStart => config.variant.initial_window,
            Startup::FixedWindow(segments) => segments,
        };
        let window = Window::new(config, segments);
        let control = Control::new(config);
        let pacing = config.variant.pacing;
        let gains = pacing.gains.or(pacing.max_rate.map(|_| Pacing::LINUX_GAINS));
        let gains = gains.filter(|_| !control.properties().paces);
        let spread = gains.map(|gains| Box::new(spread::Spread::new(gains)));
        let (mut start, mut properties) = (SlowStart::new(&config.variant), control.properties());
        if spread.is_some() {
            properties.paces = true;
            start.allow_for_pacing();
        }
        let usage = (config.variant.growth == Growth::All).then(Box::default);
        let max_rate = pacing.max_rate;
        let mut congestion = Congestion { window, control, start, grows_unused, usage, properties, spread, max_rate };
        if let Some(saved) = config.resume {
            congestion.resume(saved, config.max_jump, Time::NEVER);
        }
        congestion
    }

    /// Takes an ACK of new data, before which `flight` bytes were outstanding. Returns true if the window was in use, or if that does not
    /// matter. An unused window says nothing about the path, so it does not grow (RFC 7661 §4.3).
    #[inline(always)]
    pub(in crate::tcp) fn is_used(&mut self, flight: u64, snd_max: u64) -> bool {
        let is_used = match self.usage.as_deref_mut() {
            Some(usage) => usage.take(&self.window, flight, snd_max),
            None => self.window.is_used(flight),
        };
        self.grows_unused || is_used
    }

    /// Takes the same ACK; `is_used` is the result of [`Self::is_used`]. If that is false, only a control that
    /// [heeds](Properties::heeds_unused) it needs this call.
    #[inline(always)]
    pub(in crate::tcp) fn on_ack(&mut self, ack: &AckSample, is_used: bool) {
        if is_used {
            self.control.on_ack(&mut self.window, &mut self.start, ack);
        } else {
            self.control.on_unused(&mut self.window, &mut self.start, ack);
        }
    }

    /// Tells the control that the sender spreads each window over the round trip.
    pub(in crate::tcp) fn allow_for_pacing(&mut self) {
        self.start.allow_for_pacing();
    }

    /// Takes what an ACK has delivered.
    pub(in crate::tcp) fn on_delivered(&mut self, seen: &Delivered) {
        self.control.on_delivered(&mut self.window, seen);
    }

    /// Takes the losses that a timer has found.
    pub(in crate::tcp) fn on_found_lost(&mut self, lost: &FoundLost) {
        self.control.on_found_lost(&mut self.window, lost);
    }

    /// Called when data is sent again after the application had nothing to send and everything was acknowledged.
    pub(in crate::tcp) fn on_restart_from_idle(&mut self, now: Time) {
        self.control.on_restart_from_idle(&mut self.window, now);
    }

    /// True while the measured rates are limited by the control, not by the path.
    pub(in crate::tcp) fn holds_back(&self) -> bool {
        self.control.holds_back()
    }

    /// True if the window is constant: neither a recovery nor a single timeout may change it.
    pub(in crate::tcp) fn is_fixed(&self) -> bool {
        matches!(self.control, Control::Fixed(_))
    }

    /// What the control does besides setting a window by ACKs and losses.
    #[inline(always)]
    pub(in crate::tcp) fn properties(&self) -> Properties {
        self.properties
    }

    /// Opens the window by an ACK, whether the window was in use or not.
    pub(in crate::tcp) fn grow(&mut self, ack: &AckSample) {
        self.control.on_ack(&mut self.window, &mut self.start, ack);
    }

    /// Reverts the growth by an ACK, before which the window was `cwnd`, unless the control sets a rate.
    pub(in crate::tcp) fn hold(&mut self, cwnd: f64) {
        if !self.properties.sets_rate && self.window.exact() > cwnd {
            self.window.set(cwnd);
        }
    }

    /// Takes a loss.
    pub(in crate::tcp) fn on_loss(&mut self, loss: &LossReport) {
        self.start.on_loss(matches!(loss.found_by, FoundBy::Timeout { .. }));
        self.control.on_loss(&mut self.window, loss);
        if let FoundBy::Timeout { .. } = loss.found_by {
            self.window.deflate_all();
        }
    }

    /// Takes what an ACK reports about marks.
    pub(in crate::tcp) fn on_marks(&mut self, marks: &Marks) {
        if marks.counts {
            self.start.on_loss(false);
        }
        self.control.on_marks(&mut self.window, marks);
    }

    /// Starts with a window of `segments`.
    pub(in crate::tcp) fn restart(&mut self, segments: u32) {
        self.control.restart(&mut self.window, segments);
    }

    /// Ends NewReno's recovery with `flight` bytes outstanding.
    pub(in crate::tcp) fn on_recovered(&mut self, flight: u64) {
        self.control.on_recovered(&mut self.window, flight);
    }

    /// Undoes a spurious timeout.
    pub(in crate::tcp) fn on_spurious_timeout(&mut self, cwnd: u64, ssthresh: u64) {
        self.control.on_spurious_timeout(&mut self.window, cwnd, ssthresh);
    }

    /// The rate at which segments leave; `None` if ACKs alone clock them.
    #[inline(always)]
    pub(in crate::tcp) fn pacing_rate(&self) -> Option<Rate> {
        if !self.properties.paces {
            return None;
        }
        let rate = self.control.pacing_rate(&self.window).or_else(|| self.spread.as_ref()?.rate);
        match self.max_rate {
            Some(max) => Some(rate.map_or(max, |rate| rate.min(max))),
            None => rate,
        }
    }

    /// The rate from which a host derives the size of its packets, even if it does not pace them; `None` before the
    /// first round trip.
    #[inline(always)]
    pub(in crate::tcp) fn packet_rate(&self, flight: u64, srtt: Option<Duration>) -> Option<PacketRate> {
        match self.pacing_rate() {
            Some(rate) if self.properties.sets_rate => Some(PacketRate::Set(rate)),
            Some(rate) => Some(PacketRate::Paced(rate)),
            None => Some(PacketRate::PerRoundTrip(spread::Spread::LINUX.bytes(&self.window, flight), srtt?)),
        }
    }

    /// The minimum window from which on the [rate of packets](Self::packet_rate) is never lower than now, if the round
    /// trip is not longer. `None` for a paced sender and early in slow start, where a larger window may have a lower
    /// rate.
    pub(in crate::tcp) fn least_for_rate(&self, flight: u64) -> Option<f64> {
        (!self.properties.paces && !spread::Spread::is_early(&self.window))
            .then(|| self.window.exact().max(flight as f64))
    }

    /// Updates the pacing after a possible change of the window, the bytes in flight or the round trip.
    #[inline(always)]
    pub(in crate::tcp) fn note_round_trip(&mut self, flight: u64, srtt: impl FnOnce() -> Option<Duration>) {
        if let Some(spread) = &mut self.spread
            && let Some(srtt) = srtt()
        {
            spread.update(&self.window, flight, srtt);
        }
    }
}
