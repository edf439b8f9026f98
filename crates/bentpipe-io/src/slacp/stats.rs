//! Counters of a link endpoint.

/// Counters of lost and refused frames and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkEndpointStats {
    /// Frames refused on arrival: damaged, or not S-LACP.
    pub refused: u64,
    /// Frames not sent because a distance does not fit its field.
    pub unsaid: u64,
    /// Packets that could not be recovered because symbols were not made from packets.
    pub undecodable: u64,
    /// Packets whose headers could not be expanded.
    pub unexpanded: u64,
    /// Header bytes saved by compression. Each packet counts once.
    pub headers_saved: u64,
    /// Frames refused for lack of memory. Their sender repeats them.
    pub no_room: u64,
}
