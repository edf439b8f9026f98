//! Tokens to the tree of a script.
//!
//! packetdrill's `syntax.md` describes the language. FreeBSD's scripts add a `!` after absolute
//! sequence numbers, `...` for any sequence number, and the IP header in round brackets.

mod call;
mod packet;

use super::ast::{Action, Event, Script, When};
use super::lex::{Lexeme, Token, lex};
use super::{Mistake, Refusal};

/// The tree of a script. `defined` are the names defined for `#ifdef`.
///
/// # Errors
/// Returns the first mistake, or an unsupported protocol.
pub fn parse(text: &str, defined: &[String]) -> Result<Script, Refusal> {
    // A byte order mark, as editors on Windows write it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        let message = "the script is empty: expected an event".to_owned();
        return Err(Refusal::Mistake(Mistake { line: 1, column: 1, message }));
    }
    let (settings, tokens) = lex(text, defined).map_err(Refusal::Mistake)?;
    if let Some(feature) = tokens.iter().find_map(|lexeme| foreign(&lexeme.token)) {
        return Err(Refusal::Foreign(feature));
    }
    let mut parser = Parser { tokens, at: 0, end: (text.lines().count().max(1) as u32, 1), earliest: 0 };
    let mut events = Vec::new();
    while parser.peek().is_some() {
        events.push(parser.event()?);
    }
    Ok(Script { settings, events })
}

/// Protocols with their own grammar, by words that appear only in their scripts.
fn foreign(token: &Token) -> Option<&'static str> {
    let Token::Word(word) = token else { return None };
    Some(match word.as_str() {
        "IPPROTO_SCTP" | "sctp" => "SCTP",
        "IPPROTO_UDPLITE" | "udplite" => "UDP-Lite",
        "psp" | "psp_key_rotate" | "psp_rx_assoc" | "psp_tx_assoc" => "PSP",
        "gre" | "mpls" => "GRE and MPLS",
        "TCP_FASTOPEN" | "TCP_FASTOPEN_CONNECT" | "TCP_FASTOPEN_KEY" | "MSG_FASTOPEN" => "TCP Fast Open",
        "SOCK_DGRAM" | "IPPROTO_UDP" => "UDP",
        _ => return None,
    })
}

struct Parser {
    tokens: Vec<Lexeme>,
    at: usize,
    end: (u32, u32),
    /// The earliest time that the next event can have, in microseconds.
    earliest: i64,
}

type Parsed<T> = Result<T, Refusal>;

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> Option<&Token> {
        self.tokens.get(self.at + count).map(|lexeme| &lexeme.token)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at)?.token.clone();
        self.at += 1;
        Some(token)
    }

    fn place(&self) -> (u32, u32) {
        self.tokens.get(self.at).map_or(self.end, |lexeme| (lexeme.line, lexeme.column))
    }

    /// A mistake at the next token.
    fn expected<T>(&self, what: &str) -> Parsed<T> {
        let (line, column) = self.place();
        let message = match self.peek() {
            Some(token) => format!("{}: expected {what}", show(token)),
            None => format!("the script ends here: expected {what}"),
        };
        Err(Refusal::Mistake(Mistake { line, column, message }))
    }

    /// A mistake at an earlier position.
    fn mistake<T>(&self, (line, column): (u32, u32), message: String) -> Parsed<T> {
        Err(Refusal::Mistake(Mistake { line, column, message }))
    }

    fn is_sign(&self, sign: char) -> bool {
        self.peek() == Some(&Token::Sign(sign))
    }

    fn take(&mut self, sign: char) -> bool {
        let is = self.is_sign(sign);
        self.at += is as usize;
        is
    }

    fn sign(&mut self, sign: char) -> Parsed<()> {
        if self.take(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(have)) if have == word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += is as usize;
        is
    }

    fn any_word(&mut self, what: &str) -> Parsed<String> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => self.expected(what),
        }
    }

    /// A whole number of at most `max`.
    fn number(&mut self, what: &str, max: u64) -> Parsed<u64> {
        let value = match self.peek() {
            Some(Token::Number(digits)) => digits.parse::<u64>().ok(),
            Some(Token::Hex(value)) => Some(*value),
            // A template: the value comes from packetdrill's command line.
            Some(Token::Word(word)) if word.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {
                return Err(Refusal::Foreign("symbols from packetdrill's command line"));
            }
            _ => None,
        };
        match value {
            Some(value) if value <= max => {
                self.at += 1;
                Ok(value)
            }
            Some(_) => self.expected(&format!("{what}, at most {max}")),
            None => self.expected(what),
        }
    }

    fn event(&mut self) -> Parsed<Event> {
        let (line, _) = self.place();
        // Commands before and after all events have no time.
        if let Some(Token::Command(command)) = self.peek() {
            let action = Action::Command(command.clone());
            self.at += 1;
            return Ok(Event { line, when: When::After(0), action });
        }
        let start = self.at;
        let when = self.when()?;
        self.in_order(when, start)?;
        let action = self.action(when)?;
        Ok(Event { line, when, action })
    }

    /// Refuses a time before that of an earlier event. `start` is the time's first token. After `*` or a range, only the
    /// earliest time of the next event is known.
    fn in_order(&mut self, when: When, start: usize) -> Parsed<()> {
        let (from, to) = match when {
            When::At(at) => (at, at),
            When::Between(from, to) => (from, to),
            When::After(span) | When::AfterBetween(span, _) => (self.earliest.saturating_add(span), i64::MAX),
            When::Any => return Ok(()),
        };
        if to < self.earliest {
            let Lexeme { token, line, column } = &self.tokens[start];
            let earliest = self.earliest as f64 / 1e6;
            let message =
                format!("{}: expected a time that is not before {earliest} s, an earlier event's", show(token));
            return self.mistake((*line, *column), message);
        }
        self.earliest = self.earliest.max(from);
        Ok(())
    }

    /// Seconds with decimals, in microseconds.
    fn seconds(&mut self) -> Parsed<i64> {
        let Some(Token::Number(text)) = self.peek() else { return self.expected("a time in seconds") };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        // Times are exact to a microsecond.
        let fraction: i64 = format!("{fraction:0<6}")[..6].parse().expect("six digits");
        match whole.parse::<i64>() {
            Ok(whole) if whole < 10_000_000 => {
                self.at += 1;
                Ok(whole * 1_000_000 + fraction)
            }
            _ => self.expected("a time below ten million seconds"),
        }
    }

    fn when(&mut self) -> Parsed<When> {
        if self.take('*') {
            return Ok(When::Any);
        }
        let is_relative = self.take('+');
        let start = self.seconds()?;
        if !self.take('~') {
            return Ok(if is_relative { When::After(start) } else { When::At(start) });
        }
        let place = self.place();
        if is_relative {
            self.sign('+')?;
        }
        let end = self.seconds()?;
        if end < start {
            return self.mistake(place, "the range ends before it starts".into());
        }
        Ok(if is_relative { When::AfterBetween(start, end) } else { When::Between(start, end) })
    }

    fn action(&mut self, when: When) -> Parsed<Action> {
        match self.peek() {
            Some(Token::Sign('<')) => {
                self.at += 1;
                self.packet().map(Action::Inbound)
            }
            Some(Token::Sign('>')) => {
                self.at += 1;
                self.packet().map(Action::Outbound)
            }
            Some(Token::Command(command)) => {
                let action = Action::Command(command.clone());
                self.at += 1;
                Ok(action)
            }
            Some(Token::Code(code)) => {
                let action = Action::Code(code.clone());
                self.at += 1;
                Ok(action)
            }
            Some(Token::Ellipsis) => {
                let place = self.place();
                self.at += 1;
                if !matches!(when, When::At(_) | When::After(_)) {
                    return self.mistake(place, "a blocking call must start at one instant".into());
                }
                let until = self.seconds()?;
                self.call(Some(until)).map(Action::Call)
            }
            Some(Token::Word(_)) => self.call(None).map(Action::Call),
            _ => self.expected("a packet (`<` or `>`), a call, a command or code"),
        }
    }
}

fn show(token: &Token) -> String {
    match token {
        Token::Number(text) | Token::Word(text) => format!("`{text}`"),
        Token::Hex(value) => format!("`{value:#x}`"),
        Token::Text(_) => "a string".into(),
        Token::Command(_) => "a shell command".into(),
        Token::Code(_) => "code".into(),
        Token::Ellipsis => "`...`".into(),
        Token::Sign(sign) => format!("`{sign}`"),
    }
}
