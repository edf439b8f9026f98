//! Which packet belongs to which channel: by DSCP (RFC 2474), protocol and ports; the first rule that fits decides.

/// What a packet's headers say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Headers {
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// Protocol number of IP: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Source port, where the protocol has ports.
    pub source_port: Option<u16>,
    /// Destination port.
    pub destination_port: Option<u16>,
    /// A TCP segment that is an acknowledgement and nothing else: the next one says all that it says, so it needs
    /// neither repetition nor order.
    pub bare_ack: bool,
}

/// A rule: what it names must fit, what it does not name fits always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The code point.
    pub dscp: Option<u8>,
    /// The protocol.
    pub protocol: Option<u8>,
    /// A port, at either end.
    pub port: Option<u16>,
    /// Acknowledgements without data.
    pub bare_ack: Option<bool>,
    /// Most bytes of a packet: small ones (acknowledgements, voice) apart from large ones.
    pub most_bytes: Option<u32>,
}

impl Rule {
    /// Whether a packet of `len` bytes with these headers fits.
    pub fn fits(&self, headers: &Headers, len: u32) -> bool {
        self.dscp.is_none_or(|dscp| dscp == headers.dscp)
            && self.protocol.is_none_or(|protocol| protocol == headers.protocol)
            && self.port.is_none_or(|port| [headers.source_port, headers.destination_port].contains(&Some(port)))
            && self.bare_ack.is_none_or(|bare| bare == headers.bare_ack)
            && self.most_bytes.is_none_or(|most| len <= most)
    }
}

/// The channel of a packet: that of the first rule that fits, else the `default`.
pub fn classify(rules: &[(Rule, u8)], default: u8, headers: &Headers, len: u32) -> u8 {
    rules.iter().find(|(rule, _)| rule.fits(headers, len)).map_or(default, |&(_, channel)| channel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits() {
        // Expedited forwarding (RFC 3246) is code point 46.
        let voice = Rule { dscp: Some(46), ..Rule::default() };
        let names = Rule { protocol: Some(17), port: Some(53), ..Rule::default() };
        let small = Rule { most_bytes: Some(100), ..Rule::default() };
        let rules = [(voice, 1), (names, 2), (small, 3)];
        let udp = |dscp, port| Headers {
            dscp,
            protocol: 17,
            source_port: Some(4000),
            destination_port: Some(port),
            bare_ack: false,
        };
        assert_eq!(classify(&rules, 0, &udp(46, 53), 60), 1);
        assert_eq!(classify(&rules, 0, &udp(0, 53), 60), 2);
        assert_eq!(classify(&rules, 0, &udp(0, 54), 60), 3);
        assert_eq!(classify(&rules, 0, &udp(0, 54), 101), 0);
        let tcp = Headers { protocol: 6, ..udp(0, 53) };
        assert_eq!(classify(&rules, 0, &tcp, 101), 0);
        let acks = [(Rule { bare_ack: Some(true), ..Rule::default() }, 4)];
        assert_eq!(classify(&acks, 0, &tcp, 40), 0);
        assert_eq!(classify(&acks, 0, &Headers { bare_ack: true, ..tcp }, 40), 4);
    }
}
