//! Packets: TCP segments with their options, and ICMP messages.

use super::super::Refusal;
use super::super::ast::flag::{ACK, AE, CWR, ECE, FIN, PSH, RST, SYN, URG};
use super::super::ast::{Body, Icmp, Packet, Tcp, TcpOption, counter_names};
use super::super::lex::Token;
use super::{Parsed, Parser};
use bentpipe_engine::wire::tcp::{MARKED_CYCLE, MarkedOrder};

const FLAGS: &str = "flags: letters of SFRPUEWA, a digit of ACE and `.`, or `-`";

/// The flags AE, CWR and ECE as one number, the field ACE of accurate ECN.
fn ace(digit: char) -> u16 {
    let value = digit.to_digit(8).expect("the caller has looked");
    let bit = |at: u32, flag| if value & at != 0 { flag } else { 0 };
    bit(4, AE) | bit(2, CWR) | bit(1, ECE)
}

/// Max bytes of options in a TCP header.
const MAX_OPTIONS: usize = 40;

impl Parser {
    /// The packet after `<` or `>`.
    pub(super) fn packet(&mut self) -> Parsed<Packet> {
        let tcp = Tcp {
            flags: 0,
            seq: None,
            is_absolute: false,
            len: 0,
            ack: None,
            window: None,
            urgent: None,
            options: Some(Vec::new()),
        };
        let mut packet = Packet { ecn: None, tos: None, ttl: None, ports: None, body: Body::Tcp(tcp) };
        let mut quoted = None;
        loop {
            if self.take('(') {
                self.ip_header(&mut packet, ')')?;
            } else if self.is_sign('[') && matches!(self.ahead(1), Some(Token::Number(_))) {
                // An older syntax has the segment quoted in an ICMP message before it.
                self.at += 1;
                quoted = Some(self.quotation()?);
            } else if self.take('[') {
                self.ip_header(&mut packet, ']')?;
            } else {
                break;
            }
        }
        match self.peek() {
            Some(Token::Word(word)) => match word.as_str() {
                "icmp" => {
                    self.at += 1;
                    packet.body = Body::Icmp(self.icmp(quoted)?);
                    return Ok(packet);
                }
                "udp" => return Err(Refusal::Foreign("UDP")),
                "encap" => return Err(Refusal::Foreign("PSP")),
                _ => {}
            },
            Some(Token::Number(_)) if self.field_after_ack().is_none() => {
                let source = self.number("a port", u16::MAX.into())? as u16;
                self.sign('>')?;
                packet.ports = Some((source, self.number("a port", u16::MAX.into())? as u16));
            }
            _ => {}
        }
        packet.body = Body::Tcp(self.tcp()?);
        Ok(packet)
    }

    /// `tos 0x20`, `ttl 64`, `ect0` and so on, separated by commas.
    fn ip_header(&mut self, packet: &mut Packet, end: char) -> Parsed<()> {
        loop {
            let place = self.place();
            let word = self.any_word("ect0, ect1, ce, noecn, tos, class, ttl, hlim or flowlabel")?;
            match word.to_ascii_lowercase().as_str() {
                "noecn" => packet.ecn = Some(0),
                "ect1" => packet.ecn = Some(1),
                "ect0" => packet.ecn = Some(2),
                "ce" => packet.ecn = Some(3),
                "ect01" => return Err(Refusal::Foreign("ECN")),
                "tos" | "class" => packet.tos = Some(self.number("a byte", 255)? as u8),
                "ttl" | "hlim" => packet.ttl = Some(self.number("a byte", 255)? as u8),
                "flowlabel" => {
                    self.number("a flow label", 0xf_ffff)?;
                }
                _ => {
                    return self.mistake(
                        place,
                        format!("`{word}`: expected ect0, ect1, ce, noecn, tos, class, ttl, hlim or flowlabel"),
                    );
                }
            }
            if self.take(end) {
                return Ok(());
            }
            if !self.take(',') {
                return self.expected(&format!("`,` or `{end}`"));
            }
        }
    }

    fn flags(&mut self) -> Parsed<u16> {
        if self.take('-') {
            return Ok(0);
        }
        let mut flags = 0;
        if let Some(Token::Word(word)) = self.peek() {
            for letter in word.chars() {
                flags |= match letter {
                    'F' => FIN,
                    'S' => SYN,
                    'R' => RST,
                    'P' => PSH,
                    'U' => URG,
                    'E' => ECE,
                    'W' => CWR,
                    'A' => AE,
                    '0'..='7' => ace(letter),
                    _ => return self.expected(FLAGS),
                };
            }
            self.at += 1;
        } else if !self.is_sign('.') && self.field_after_ack().is_none() {
            return self.expected(FLAGS);
        }
        if let Some(field) = self.field_after_ack() {
            flags |= ACK | field;
            self.at += 1;
        } else if self.take('.') {
            flags |= ACK;
        }
        Ok(flags)
    }

    /// The flags of `.5`: the field ACE after the sign of ACK. It looks like a number.
    fn field_after_ack(&self) -> Option<u16> {
        match self.peek() {
            Some(Token::Number(text)) => match text.strip_prefix("0.")?.as_bytes() {
                [digit @ b'0'..=b'7'] => Some(ace(char::from(*digit))),
                _ => None,
            },
            _ => None,
        }
    }

    /// `1:1001(1000)`; the two ends.
    fn span(&mut self) -> Parsed<(u32, u32)> {
        let start = self.number("a sequence number", u32::MAX.into())? as u32;
        self.sign(':')?;
        let place = self.place();
        let end = self.number("a sequence number", u32::MAX.into())? as u32;
        self.sign('(')?;
        let len = self.number("a length", 65_535)? as u32;
        self.sign(')')?;
        if start.wrapping_add(len) != end {
            return self.mistake(place, format!("`{start}:{end}({len})`: expected start plus length to equal the end"));
        }
        Ok((start, len))
    }

    fn tcp(&mut self) -> Parsed<Tcp> {
        let flags = self.flags()?;
        let (seq, len) = if self.peek() == Some(&Token::Ellipsis) {
            self.at += 1;
            self.sign('(')?;
            let len = self.number("a length", 65_535)? as u32;
            self.sign(')')?;
            (None, len)
        } else {
            let (seq, len) = self.span()?;
            (Some(seq), len)
        };
        let is_absolute = self.take('!');
        let (mut ack, mut window, mut urgent) = (None, None, None);
        loop {
            if self.take_word("ack") {
                ack = Some(self.number("an acknowledgement number", u32::MAX.into())? as u32);
            } else if self.take_word("win") {
                window = Some(self.number("a window", 65_535)? as u16);
            } else if self.take_word("urg") {
                urgent = Some(self.number("an urgent pointer", 65_535)? as u16);
            } else {
                break;
            }
        }
        // A line may have two events: `<` starts options only where no packet, which needs a time, can start.
        let options = if self.take('<') { self.options()? } else { Some(Vec::new()) };
        if self.is_sign('/') {
            return Err(Refusal::Foreign("UDP encapsulation"));
        }
        Ok(Tcp { flags, seq, is_absolute, len, ack, window, urgent, options })
    }

    fn options(&mut self) -> Parsed<Option<Vec<TcpOption>>> {
        if self.peek() == Some(&Token::Ellipsis) {
            self.at += 1;
            self.sign('>')?;
            return Ok(None);
        }
        let place = self.place();
        let mut options = Vec::new();
        loop {
            options.push(self.option()?);
            if self.take('>') {
                break;
            }
            if !self.take(',') {
                return self.expected("`,` or `>`");
            }
        }
        let len: usize = options.iter().map(len_of).sum();
        if len > MAX_OPTIONS {
            return self.mistake(place, format!("{len} bytes of options: expected at most {MAX_OPTIONS}"));
        }
        Ok(Some(options))
    }

    fn option(&mut self) -> Parsed<TcpOption> {
        let place = self.place();
        let name = self.any_word("a TCP option")?;
        Ok(match name.as_str() {
            "nop" => TcpOption::Nop,
            "eol" => TcpOption::Eol,
            "mss" => TcpOption::Mss(self.number("a segment size", 65_535)? as u16),
            "wscale" => TcpOption::WindowScale(self.number("a shift", 255)? as u8),
            "sackOK" => TcpOption::SackPermitted,
            "sack" => {
                let mut blocks = Vec::new();
                while matches!(self.peek(), Some(Token::Number(_))) {
                    let start = self.number("a sequence number", u32::MAX.into())? as u32;
                    self.sign(':')?;
                    blocks.push((start, self.number("a sequence number", u32::MAX.into())? as u32));
                }
                if blocks.is_empty() {
                    return self.expected("a block, start:end");
                }
                TcpOption::Sack(blocks)
            }
            "TS" => {
                if !self.take_word("val") {
                    return self.expected("`val`");
                }
                let value = self.number("a timestamp", u32::MAX.into())? as u32;
                if !self.take_word("ecr") {
                    return self.expected("`ecr`");
                }
                TcpOption::Timestamps(value, self.number("a timestamp", u32::MAX.into())? as u32)
            }
            "FO" | "FOEXP" => return Err(Refusal::Foreign("TCP Fast Open")),
            "md5" => return Err(Refusal::Foreign("TCP MD5 signatures")),
            "ECN" => {
                let first = if self.is_word("e0b") { MarkedOrder::Ect0First } else { MarkedOrder::Ect1First };
                let mut counters = Vec::new();
                for name in counter_names(first) {
                    if !self.take_word(name) {
                        break;
                    }
                    counters.push(self.number("a counter of bytes", u64::from(MARKED_CYCLE) - 1)? as u32);
                }
                TcpOption::Marked(first, counters)
            }
            "gen" | "exp" | "ao" => return Err(Refusal::Foreign("TCP options without a name in packetdrill")),
            _ => {
                let known = "nop, eol, mss, wscale, sackOK, sack, TS, ECN, FO, FOEXP or md5";
                return self.mistake(place, format!("`{name}`: expected {known}"));
            }
        })
    }

    fn icmp(&mut self, quoted: Option<u32>) -> Parsed<Icmp> {
        let mut icmp = Icmp { kind: self.any_word("a type of ICMP")?, code: None, mtu: None, quoted };
        if !self.is_word("mtu") && !self.is_word("id") && matches!(self.peek(), Some(Token::Word(_))) {
            icmp.code = Some(self.any_word("a code")?);
        }
        loop {
            if self.take_word("mtu") {
                icmp.mtu = Some(self.number("an MTU", u32::MAX.into())? as u32);
            } else if self.take_word("id") {
                self.number("an identifier", u16::MAX.into())?;
            } else if self.take('[') {
                icmp.quoted = Some(self.quotation()?);
            } else {
                return Ok(icmp);
            }
        }
    }

    /// The segment that an ICMP message quotes, after `[`.
    fn quotation(&mut self) -> Parsed<u32> {
        if self.is_word("udp") || self.is_word("raw") {
            return Err(Refusal::Foreign("UDP"));
        }
        let (seq, _) = self.span()?;
        if self.is_sign('/') {
            return Err(Refusal::Foreign("UDP encapsulation"));
        }
        self.sign(']')?;
        Ok(seq)
    }
}

/// Length of an option in bytes.
pub(crate) fn len_of(option: &TcpOption) -> usize {
    match option {
        TcpOption::Nop | TcpOption::Eol => 1,
        TcpOption::Mss(_) => 4,
        TcpOption::WindowScale(_) => 3,
        TcpOption::SackPermitted => 2,
        TcpOption::Sack(blocks) => 2 + 8 * blocks.len(),
        TcpOption::Timestamps(..) => 10,
        TcpOption::Marked(_, counters) => 2 + 3 * counters.len(),
        TcpOption::Other(_, body) => 2 + body.len(),
    }
}
