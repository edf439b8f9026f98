//! The columns of the paper's tables: senders, with and without RED at the satellite link.

/// A column of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variant {
    Ref,
    RefIw4,
    RefDaass,
    Sack,
    SackLt,
    Enh,
    RefRed,
    EnhRed,
}

impl Variant {
    pub(super) const ALL: [Variant; 8] = [
        Variant::Ref,
        Variant::RefIw4,
        Variant::RefDaass,
        Variant::Sack,
        Variant::SackLt,
        Variant::Enh,
        Variant::RefRed,
        Variant::EnhRed,
    ];

    /// The columns of table 1.
    pub(super) const WITHOUT_RED: &'static [Variant] = Self::ALL.split_at(6).0;

    /// Name in the ids and in `expected.toml`.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Variant::Ref => "Ref",
            Variant::RefIw4 => "Ref_IW4",
            Variant::RefDaass => "Ref_DAASS",
            Variant::Sack => "SACK",
            Variant::SackLt => "SACK_LT",
            Variant::Enh => "Enh",
            Variant::RefRed => "Ref_RED",
            Variant::EnhRed => "Enh_RED",
        }
    }

    /// Name for display.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Variant::Ref => "Reference",
            Variant::RefIw4 => "Reference, IW 4",
            Variant::RefDaass => "Reference, DAASS",
            Variant::Sack => "SACK",
            Variant::SackLt => "SACK + limited transmit",
            Variant::Enh => "Enhanced",
            Variant::RefRed => "Reference + RED",
            Variant::EnhRed => "Enhanced + RED",
        }
    }

    pub(super) const fn red(self) -> bool {
        matches!(self, Variant::RefRed | Variant::EnhRed)
    }

    /// Value of `tcp.variant` in the scenario files.
    pub(super) const fn row(self) -> &'static str {
        match self {
            Variant::Ref | Variant::RefRed => "ref",
            Variant::RefIw4 => "ref-iw4",
            Variant::RefDaass => "ref-daass",
            Variant::Sack => "sack",
            Variant::SackLt => "sack-lt",
            Variant::Enh | Variant::EnhRed => "enh",
        }
    }
}
