//! Which bytes of a segment are new.

/// The new bytes of a segment's payload, in sequence numbers. A driver must store only these, so that received data,
/// possibly reported by SACK, is never overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fresh {
    /// None.
    #[default]
    None,
    /// From the first number to before the second.
    Span(u64, u64),
    /// The spans that [`Duplex::fresh_spans`](crate::tcp::Duplex::fresh_spans) lists until the next segment, with received
    /// ranges between them.
    Spans,
}
