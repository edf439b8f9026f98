//! Text of a script to lines.

use bentpipe_engine::tcp::{Flags, SackBlocks, Segment, Timestamps};

/// A script: settings, then lines in order.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) lines: Vec<Line>,
}

/// When a line happens, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum When {
    After(u64),
    At(u64),
    Any,
}

#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) when: When,
    pub(crate) action: Action,
}

#[derive(Debug)]
pub(crate) enum Action {
    Receive(Packet),
    Expect(Packet),
    Connect,
    Listen,
    Establish { rtt: u64, answer: Packet },
    Write(u64),
    Read(u64),
    Close,
    Abort,
    Successor,
    Check(String),
}

/// A segment as written; what is `None` is not looked at.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) segment: Segment,
    pub(crate) window: Option<u32>,
    pub(crate) any_options: bool,
}

/// Seconds with decimals to nanoseconds, exactly.
fn nanos(text: &str) -> Result<u64, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let wrong = || format!("`{text}` is no time in seconds");
    if part.len() > 9 || (whole.is_empty() && part.is_empty()) {
        return Err(wrong());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    let part: u64 = format!("{part:0<9}").parse().map_err(|_| wrong())?;
    Ok(whole * 1_000_000_000 + part)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

pub(crate) fn parse(text: &str) -> Result<Script, String> {
    let mut script = Script::default();
    for (n, line) in text.lines().enumerate() {
        let line = line.split("//").next().expect("a first part").trim();
        if line.is_empty() {
            continue;
        }
        let at = |message: String| format!("line {}: {message}", n + 1);
        if line.starts_with("--") {
            for setting in line.split_whitespace() {
                let (key, value) = setting.split_once('=').unwrap_or((setting, "on"));
                script.settings.push((key.trim_start_matches('-').to_owned(), value.to_owned()));
            }
            continue;
        }
        let (when, rest) = line.split_once(char::is_whitespace).ok_or_else(|| at("no action".into()))?;
        let when = match when.strip_prefix('+') {
            Some(span) => When::After(nanos(span).map_err(at)?),
            None if when == "*" => When::Any,
            None => When::At(nanos(when).map_err(at)?),
        };
        let action = action(rest.trim()).map_err(at)?;
        script.lines.push(Line { number: n + 1, text: line.to_owned(), when, action });
    }
    Ok(script)
}

fn action(text: &str) -> Result<Action, String> {
    if let Some(rest) = text.strip_prefix('<') {
        return packet(rest.trim()).map(Action::Receive);
    }
    if let Some(rest) = text.strip_prefix('>') {
        return packet(rest.trim()).map(Action::Expect);
    }
    if let Some(rest) = text.strip_prefix("%{") {
        let inner = rest.strip_suffix("}%").ok_or("`%{` without `}%`")?;
        return Ok(Action::Check(inner.trim().to_owned()));
    }
    let (name, argument) = match text.split_once('(') {
        Some((name, rest)) => (name, rest),
        None => (text, ""),
    };
    let argument_number = || number(argument.trim_end_matches(')'));
    match name {
        "connect" => Ok(Action::Connect),
        "listen" => Ok(Action::Listen),
        "write" => Ok(Action::Write(argument_number()?)),
        "read" => Ok(Action::Read(argument_number()?)),
        "close" => Ok(Action::Close),
        "abort" => Ok(Action::Abort),
        "successor" => Ok(Action::Successor),
        "establish" => establish(argument),
        _ => Err(format!("unknown command `{name}`")),
    }
}

fn establish(argument: &str) -> Result<Action, String> {
    let (settings, rest) = argument.split_once(')').ok_or("`establish(` without `)`")?;
    let (mut rtt, mut win) = (100_000_000, 65535);
    for setting in settings.split(',').map(str::trim).filter(|s| !s.is_empty()) {
        match setting.split_once('=') {
            Some(("rtt", value)) => rtt = nanos(value)?,
            Some(("win", value)) => win = number(value)?,
            _ => return Err(format!("unknown setting `{setting}` of establish")),
        }
    }
    let answer = packet(&format!("S. 0:0(0) ack 1 win {win} {}", rest.trim()))?;
    Ok(Action::Establish { rtt, answer })
}

/// `S. 0:0(0) ack 1 win 65535 <mss 1000,sackOK>`.
fn packet(text: &str) -> Result<Packet, String> {
    let (head, options) = match text.split_once('<') {
        Some((head, rest)) => (head.trim(), Some(rest.strip_suffix('>').ok_or("`<` without `>`")?.trim())),
        None => (text, None),
    };
    let mut words = head.split_whitespace();
    let mut flags = Flags::NONE;
    for letter in words.next().ok_or("no flags")?.chars() {
        flags = flags
            | match letter {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                '.' => Flags::ACK,
                '-' => Flags::NONE,
                _ => return Err(format!("unknown flag `{letter}`")),
            };
    }
    let mut segment = Segment::new(flags);
    let span = words.next().ok_or("no sequence numbers")?;
    let (start, rest) = span.split_once(':').ok_or_else(|| format!("`{span}` is not start:end(length)"))?;
    let (end, len) = rest.split_once('(').ok_or_else(|| format!("`{span}` is not start:end(length)"))?;
    segment.seq = number(start)?;
    segment.len = number(len.trim_end_matches(')'))?;
    if segment.seq + segment.len as u64 != number::<u64>(end)? {
        return Err(format!("`{span}`: start and length do not give the end"));
    }
    let mut window = None;
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("`{word}` without a value"))?;
        match word {
            "ack" => segment.ack = number(value)?,
            "win" => window = Some(number(value)?),
            _ => return Err(format!("unknown field `{word}`")),
        }
    }
    segment.window = window.unwrap_or(65535);
    let any_options = options == Some("...");
    if let Some(options) = options.filter(|_| !any_options) {
        for option in options.split(',').map(str::trim).filter(|o| !o.is_empty()) {
            read_option(option, &mut segment)?;
        }
    }
    Ok(Packet { segment, window, any_options })
}

fn read_option(option: &str, segment: &mut Segment) -> Result<(), String> {
    let words: Vec<&str> = option.split_whitespace().collect();
    match words[..] {
        ["nop"] => {}
        ["mss", value] => segment.syn.mss = Some(number(value)?),
        ["wscale", value] => segment.syn.window_scale = Some(number(value)?),
        ["sackOK"] => segment.syn.sack_permitted = true,
        ["TS", "val", value, "ecr", echo] => {
            segment.timestamps = Some(Timestamps { value: number(value)?, echo: number(echo)? })
        }
        ["sack", ref blocks @ ..] => {
            let mut sack = SackBlocks::NONE;
            for block in blocks {
                let (start, end) = block.split_once(':').ok_or_else(|| format!("`{block}` is not start:end"))?;
                if !sack.push(segment.ack, number(start)?, number(end)?) {
                    return Err("more than 4 SACK blocks".into());
                }
            }
            segment.sack = sack;
        }
        _ => return Err(format!("unknown option `{option}`")),
    }
    Ok(())
}

/// A mistake in a script must not pass for a test.
pub(crate) fn self_test() -> Result<(), String> {
    let mistakes = [
        "+0 conect",
        "+0 > S 0:0",
        "+0 > Q 0:0(0)",
        "+0 > . 1:1001(999) ack 1",
        "+0 < . 1:1(0) ack 1 win",
        "+0 < . 1:1(0) ack 1 <sak 1:2>",
        "+x > . 1:1(0) ack 1",
        "+0 %{ cwnd == 1",
        "+0",
    ];
    for mistake in mistakes {
        if parse(mistake).is_ok() {
            return Err(format!("`{mistake}` was taken"));
        }
    }
    Ok(())
}
