//! CoDel (RFC 8289) drops packets as they leave a queue.

use super::config::Codel;
use super::waiting::Waiting;
use crate::units::{Duration, Time};

/// A queue of at most one packet is not a standing queue (RFC 8289 §4.4).
const ONE_PACKET: u64 = 1514;

/// CoDel's state (RFC 8289 §5).
#[derive(Clone, Debug)]
pub(super) struct Control {
    config: Codel,
    /// When the sojourn time will have been above the target for a whole interval.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    count: u32,
    last_count: u32,
}

impl Control {
    pub(super) fn new(config: Codel) -> Self {
        Control { config, first_above: None, dropping: false, drop_next: Time::ZERO, count: 0, last_count: 0 }
    }

    /// Takes the next packet. `take` removes one from the queue and returns it with the number of bytes left. `judge`
    /// is called with each packet to be dropped. If it returns true, the packet was marked and is sent instead.
    //= RFC 8289 §5.5: the dequeue routine
    pub(super) fn pop(
        &mut self,
        now: Time,
        take: &mut impl FnMut() -> Option<(Waiting, u64)>,
        judge: &mut impl FnMut(u32) -> bool,
    ) -> Option<Waiting> {
        let (mut packet, mut may_drop) = self.look(now, take);
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                let handle = packet?.handle;
                self.count = self.count.saturating_add(1);
                if judge(handle) {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                (packet, may_drop) = self.look(now, take);
                if may_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            if !judge(packet?.handle) {
                (packet, _) = self.look(now, take);
            }
            self.dropping = true;
            //= RFC 8289 §5.5: "assume that the drop rate [...] on the last cycle is a good starting point"
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.saturating_since(self.drop_next) < self.config.interval.saturating_mul(16);
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        packet
    }

    //= RFC 8289 §5.6: the helper that takes a packet and tells whether it may be dropped
    fn look(&mut self, now: Time, take: &mut impl FnMut() -> Option<(Waiting, u64)>) -> (Option<Waiting>, bool) {
        let Some((packet, left)) = take() else {
            self.first_above = None;
            return (None, false);
        };
        if now.saturating_since(packet.since) < self.config.target || left <= ONE_PACKET {
            self.first_above = None;
            return (Some(packet), false);
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.config.interval);
                (Some(packet), false)
            }
            Some(at) => (Some(packet), now >= at),
        }
    }

    fn control_law(&self, from: Time) -> Time {
        from + Duration::from_secs_f64_rounded(self.config.interval.as_secs_f64() / libm::sqrt(self.count as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Codel = Codel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn packet(since: Time) -> Waiting {
        Waiting { handle: 0, len: 1000, flow: 0, host: 0, since, acknowledges: None }
    }

    /// Takes a packet that has waited for this long from a queue that then has `left` bytes. Returns true if a packet was
    /// dropped before it.
    fn pop(codel: &mut Control, now: Time, waited: u64, left: u64) -> bool {
        let mut drops = 0;
        let since = now.saturating_sub(Duration::from_millis(waited));
        let taken = codel.pop(now, &mut || Some((packet(since), left)), &mut |_| {
            drops += 1;
            false
        });
        assert!(taken.is_some() && drops <= 1, "{drops}");
        drops > 0
    }

    /// RFC 8289 §5.5: a new cycle goes on with the drops that the last one has added, if there were two or more and it ended less than 16
    /// intervals ago. With four, the next drop is due after 100 ms / sqrt(4).
    #[test]
    fn a_new_cycle_begins_where_the_last_one_ended() {
        for (count, now, expected, next) in
            [(10, 1100, 4, 1150), (10, 2599, 4, 2649), (10, 2600, 1, 2700), (7, 1100, 1, 1200)]
        {
            let mut codel = Control { count, last_count: 6, drop_next: at(1000), ..Control::new(CONFIG) };
            codel.first_above = Some(at(1000));
            assert!(pop(&mut codel, at(now), 50, 9000), "{count} {now}");
            assert_eq!((codel.count, codel.last_count, codel.drop_next), (expected, expected, at(next)), "{now}");
        }
    }

    /// RFC 8289 §4.4: as long as what is left is at most a packet of maximum length, no queue stands, however long the packet has waited.
    #[test]
    fn a_single_packet_is_no_standing_queue() {
        for (left, stands) in [(1514, false), (1515, true)] {
            let mut codel = Control::new(CONFIG);
            assert!(!pop(&mut codel, at(1000), 50, left));
            assert_eq!(pop(&mut codel, at(1100), 50, left), stands, "{left}");
        }
    }

    /// Marks drop nothing, so a flow that ignores them keeps its queue standing as long as it sends, and each packet is marked in the end.
    #[test]
    fn marks_that_are_ignored_do_not_end() {
        let mut codel = Control { count: u32::MAX - 1, dropping: true, drop_next: at(1000), ..Control::new(CONFIG) };
        codel.first_above = Some(at(900));
        for ms in 1000..1010 {
            let mut marks = 0;
            let taken = codel.pop(at(ms), &mut || Some((packet(at(0)), 9000)), &mut |_| {
                marks += 1;
                true
            });
            assert!(taken.is_some() && marks == 1, "{ms} ms: {marks}");
        }
    }

    /// A queue that was empty in between has not stood for an interval.
    #[test]
    fn an_empty_queue_ends_the_interval() {
        for is_empty in [false, true] {
            let mut codel = Control::new(CONFIG);
            assert!(!pop(&mut codel, at(1000), 50, 9000));
            if is_empty {
                assert!(codel.pop(at(1050), &mut || None, &mut |_| panic!("nothing to drop")).is_none());
            }
            assert_eq!(pop(&mut codel, at(1100), 50, 9000), !is_empty);
        }
    }

    /// RFC 8289 §5.5 with a target of 5 ms and an interval of 100 ms. The first drop comes when all packets have waited
    /// for 5 ms or more during an interval, the next ones after 100 ms, 100 ms / sqrt(2) and 100 ms / sqrt(3), until a
    /// packet has waited for less. The next cycle needs an interval again, and begins with the two drops that this one
    /// has added: 100 ms / sqrt(2).
    #[test]
    fn a_cycle_by_hand() {
        let mut codel = Control::new(CONFIG);
        for (now, waited, drops) in [
            (900, 4, false),
            (1000, 5, false),
            (1099, 50, false),
            (1100, 50, true),
            (1199, 50, false),
            (1200, 50, true),
            (1270, 50, false),
            (1271, 50, true),
            (1328, 50, false),
            (1329, 4, false),
            (1330, 50, false),
            (1429, 50, false),
            (1430, 50, true),
            (1500, 50, false),
            (1501, 50, true),
        ] {
            assert_eq!(pop(&mut codel, at(now), waited, 9000), drops, "{now}");
        }
    }

    /// RFC 8289 §5.5: if the packet behind a dropped one has waited for less than the target, the dropping ends, and it is sent.
    #[test]
    fn a_drop_may_end_the_dropping() {
        let mut codel = Control { count: 5, dropping: true, drop_next: at(1000), ..Control::new(CONFIG) };
        codel.first_above = Some(at(900));
        let mut waits = [50, 4, 50].into_iter().map(|waited| (packet(at(1300 - waited)), 9000));
        let mut drops = 0;
        let taken = codel.pop(at(1300), &mut || waits.next(), &mut |_| {
            drops += 1;
            false
        });
        assert_eq!((taken.map(|packet| packet.since), drops, codel.dropping), (Some(at(1296)), 1, false));
    }
}
