//! The options of accurate ECN (RFC 9768 §3.2.3): how many bytes of data arrived with each ECN field.

/// Values of a counter on the wire: three bytes.
pub const CYCLE: u32 = 1 << 24;

/// Bytes of data that arrived marked CE, ECT(0) and ECT(1), each modulo [`CYCLE`]. An option may omit counters from its end; without any,
/// it only shows that options get through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct MarkedBytes {
    /// ECT(0) (EE0B).
    pub ect0: Option<u32>,
    /// CE (ECEB).
    pub ce: Option<u32>,
    /// ECT(1) (EE1B).
    pub ect1: Option<u32>,
}

/// The two orders, by the kind of the option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Order {
    /// EE0B, ECEB, EE1B: kind 172.
    Ect0First,
    /// EE1B, ECEB, EE0B: kind 174.
    Ect1First,
}

impl Order {
    /// The option's kind.
    pub const fn kind(self) -> u8 {
        match self {
            Order::Ect0First => 172,
            Order::Ect1First => 174,
        }
    }

    /// The order of an option of this kind.
    pub const fn of(kind: u8) -> Option<Self> {
        match kind {
            172 => Some(Order::Ect0First),
            174 => Some(Order::Ect1First),
            _ => None,
        }
    }

    /// The first `len` counters of an option in this order.
    pub fn first(self, len: usize, ect0: u32, ce: u32, ect1: u32) -> MarkedBytes {
        let kept = |place, value| (place < len).then_some(value % CYCLE);
        let (at0, at1) = if self == Order::Ect0First { (0, 2) } else { (2, 0) };
        MarkedBytes { ect0: kept(at0, ect0), ce: kept(1, ce), ect1: kept(at1, ect1) }
    }
}

/// Length of an option with this number of counters, in bytes, with its padding.
pub(crate) const fn option_len(counters: usize) -> u32 {
    (2 + 3 * counters as u32).next_multiple_of(4)
}

impl MarkedBytes {
    /// Number of counters.
    pub fn len(&self) -> usize {
        [self.ect0, self.ce, self.ect1].iter().flatten().count()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The order in which it is sent. If both orders are possible, that of Linux.
    pub fn order(&self) -> Order {
        if self.ect1.is_some() || self.ect0.is_none() { Order::Ect1First } else { Order::Ect0First }
    }

    /// The counters in the order in which they are sent.
    pub fn counters(&self) -> impl Iterator<Item = u32> {
        let [first, last] = match self.order() {
            Order::Ect0First => [self.ect0, self.ect1],
            Order::Ect1First => [self.ect1, self.ect0],
        };
        [first, self.ce, last].into_iter().flatten()
    }

    /// Reads the body of an option. Bytes after its counters are ignored.
    //= RFC 9768 §3.2.3: of an option of any other length the whole fields that fit are used, and the rest is padding
    pub fn read(order: Order, body: &[u8]) -> Self {
        let mut fields = body.as_chunks::<3>().0.iter().map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c]));
        let (first, ce, last) = (fields.next(), fields.next(), fields.next());
        match order {
            Order::Ect0First => MarkedBytes { ect0: first, ce, ect1: last },
            Order::Ect1First => MarkedBytes { ect0: last, ce, ect1: first },
        }
    }

    /// Which counters there are, in three bits, and the counters in 72.
    pub(super) fn pack(&self) -> (u8, u128) {
        let all = [self.ect0, self.ce, self.ect1];
        let bit = |(at, field): (usize, &Option<u32>)| u8::from(field.is_some()) << at;
        let value = |(at, field): (usize, &Option<u32>)| u128::from(field.unwrap_or(0) % CYCLE) << (24 * at);
        (all.iter().enumerate().map(bit).sum(), all.iter().enumerate().map(value).sum())
    }

    /// Reverses [`MarkedBytes::pack`].
    pub(super) fn unpack(bits: u8, values: u128) -> Self {
        let field = |at: u32| (bits >> at & 1 != 0).then_some((values >> (24 * at)) as u32 % CYCLE);
        MarkedBytes { ect0: field(0), ce: field(1), ect1: field(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9768 §3.2.3, table 5.
    #[test]
    fn counters_are_omitted_from_the_end() {
        for order in [Order::Ect0First, Order::Ect1First] {
            for len in 0..=3 {
                let bytes = order.first(len, 1, CYCLE + 2, 3);
                assert_eq!(bytes.len(), len);
                let body: Vec<u8> = bytes.counters().flat_map(|value| value.to_be_bytes()[1..].to_vec()).collect();
                assert_eq!(MarkedBytes::read(bytes.order(), &body), bytes, "{order:?} {len}");
                let (bits, values) = bytes.pack();
                assert_eq!(MarkedBytes::unpack(bits, values), bytes);
            }
        }
        assert_eq!([0, 1, 2, 3].map(option_len), [4, 8, 8, 12]);
        let two = Order::Ect0First.first(2, 1, 2, 3);
        assert_eq!((two.ect0, two.ce, two.ect1), (Some(1), Some(2), None));
    }

    /// Whole fields are read, and what follows is padding.
    #[test]
    fn other_lengths_are_read_as_far_as_they_go() {
        let read = |body: &[u8]| MarkedBytes::read(Order::Ect0First, body);
        assert_eq!(read(&[0, 1]), MarkedBytes::default());
        assert_eq!(read(&[0, 0, 7, 9]), MarkedBytes { ect0: Some(7), ..MarkedBytes::default() });
        assert_eq!(read(&[0, 0, 1, 0, 0, 2, 0, 0, 3, 4, 5, 6]).len(), 3);
    }

    /// RFC 9768 §3.2.3, figure 5: kind, length, and fields of 24 bits, here behind NOPs. With the bytes marked ECT(1),
    /// kind 174 begins with them.
    #[test]
    fn options_by_hand() {
        use crate::wire::ip::{Addresses, Ports};
        use crate::wire::tcp::{Flags, HEADER, Segment, Translation};
        let addresses = Addresses::V4 { source: [192, 0, 2, 1].into(), destination: [192, 0, 2, 2].into() };
        let mut us = Translation::new(addresses, Ports { source: 1, destination: 2 }, 3);
        for (ect0, ce, ect1, option) in [
            (Some(1), Some(0x02_03), Some(0x04_05_06), &[1, 174, 11, 4, 5, 6, 0, 2, 3, 0, 0, 1][..]),
            (Some(1), Some(0x02_03), None, &[172, 8, 0, 0, 1, 0, 2, 3]),
            (None, Some(0x02_03), Some(7), &[174, 8, 0, 0, 7, 0, 2, 3]),
            (Some(9), None, None, &[1, 1, 1, 172, 5, 0, 0, 9]),
        ] {
            let mut segment = Segment::new(Flags::ACK);
            let marked = MarkedBytes { ect0, ce, ect1 };
            assert!(segment.set_marked_bytes(&marked) && !marked.is_empty());
            let mut out = [0; 60];
            let length = us.emit(&segment, &[], &mut out).expect("it fits");
            assert_eq!(&out[HEADER..length], option);
        }
        assert!(MarkedBytes::default().is_empty());
    }
}
