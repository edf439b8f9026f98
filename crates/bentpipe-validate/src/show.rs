//! The events of one scenario, line by line, for comparison with a trace of ns-2: segments in its numbering.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::tcp::FIRST_BYTE;
use bentpipe_engine::units::Time;
use bentpipe_sim::{Body, Observer, Packet, Passage};

/// Prints `time event flow number` for segments that leave H1, are lost or reach H2, and for ACKs that reach
/// H1.
pub(crate) struct Show {
    pub(crate) payload: u64,
    /// ns-2 numbers the SYN 0.
    pub(crate) syn: bool,
}

impl Probe for Show {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        let telling = matches!(event, Event::Timeout { .. } | Event::RecoveryEntered { .. } | Event::RecoveryLeft);
        if telling && who.0.is_multiple_of(2) {
            println!("{:.6} # {} {event:?}", now.as_secs_f64(), who.0 / 2);
        }
    }
}

impl Observer for Show {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        let Body::Tcp(segment) = packet.body else { return };
        let number = |seq: u64| seq.div_ceil(self.payload) as i64 - if seq >= FIRST_BYTE && !self.syn { 1 } else { 0 };
        let (what, number) = match (link.0, passage) {
            (0, Passage::Offered) => ("send", number(segment.seq)),
            (1, Passage::Dropped(_)) => ("drop", number(segment.seq)),
            (2, Passage::Delivered) => ("recv", number(segment.seq)),
            (5, Passage::Delivered) => ("ack", number(segment.ack) - 1),
            _ => return,
        };
        println!("{:.9} {what} {} {number}", now.as_secs_f64(), packet.connection.0);
    }
}
