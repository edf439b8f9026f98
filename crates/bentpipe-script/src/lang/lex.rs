//! Text to tokens. Comments, `#ifdef` and the `--name=value` lines at the top are removed first.

use super::Mistake;
use super::ast::Setting;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// Digits, with or without a point.
    Number(String),
    /// `0x` and digits.
    Hex(u64),
    /// A name.
    Word(String),
    /// A string.
    Text(String),
    /// A shell command.
    Command(String),
    /// Python.
    Code(String),
    /// `...`.
    Ellipsis,
    /// Anything else.
    Sign(char),
}

/// A token and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lexeme {
    /// The token.
    pub token: Token,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// Settings and tokens of a script. `defined` are the names defined for `#ifdef`.
///
/// # Errors
/// Fails on an unterminated string, command, code or comment, an unknown character, or `#else` or `#endif` without
/// `#ifdef`.
pub(crate) fn lex(text: &str, defined: &[String]) -> Result<(Vec<Setting>, Vec<Lexeme>), Mistake> {
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0, line: 1, column: 1 };
    let mut settings = Vec::new();
    let mut tokens = Vec::new();
    // For each open `#ifdef`: whether its part is used.
    let mut taken: Vec<(bool, u32)> = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let (line, column) = (lexer.line, lexer.column);
        let Some(next) = lexer.peek(0) else { break };
        let mistake = |message: String| Mistake { line, column, message };
        if next == '#' {
            let directive = lexer.rest_of_line();
            let words: Vec<&str> = directive.split_whitespace().collect();
            match words[..] {
                ["#ifdef", name, ..] => taken.push((defined.iter().any(|known| known == name), line)),
                ["#ifndef", name, ..] => taken.push((!defined.iter().any(|known| known == name), line)),
                ["#else", ..] => match taken.last_mut() {
                    Some(open) => open.0 = !open.0,
                    None => return Err(mistake("`#else` without `#ifdef`".into())),
                },
                ["#endif", ..] => {
                    if taken.pop().is_none() {
                        return Err(mistake("`#endif` without `#ifdef`".into()));
                    }
                }
                _ => return Err(mistake(format!("`{directive}`: expected #ifdef, #ifndef, #else or #endif"))),
            }
            continue;
        }
        if !taken.iter().all(|open| open.0) {
            lexer.rest_of_line();
            continue;
        }
        if tokens.is_empty() && next == '-' && lexer.peek(1) == Some('-') {
            let text = lexer.rest_of_line();
            let text = text.split("//").next().unwrap_or_default();
            for word in text.split_whitespace() {
                settings.push(setting(word, line).ok_or_else(|| mistake(format!("`{word}`: expected --name=value")))?);
            }
            continue;
        }
        let token = lexer.token().map_err(mistake)?;
        tokens.push(Lexeme { token, line, column });
    }
    match taken.last() {
        Some((_, line)) => Err(Mistake { line: *line, column: 1, message: "`#ifdef` without `#endif`".into() }),
        None => Ok((settings, tokens)),
    }
}

fn setting(word: &str, line: u32) -> Option<Setting> {
    let word = word.strip_prefix("--")?;
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.trim_matches('"').to_owned())),
        None => (word, None),
    };
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    is_name.then(|| Setting { line, name: name.to_owned(), value })
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: u32,
    column: u32,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        if c == '\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn rest_of_line(&mut self) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek(0).filter(|c| *c != '\n') {
            text.push(c);
            self.next();
        }
        text.trim().to_owned()
    }

    /// White space and comments.
    fn skip_blanks(&mut self) -> Result<(), Mistake> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(c), _) if c.is_whitespace() => {
                    self.next();
                }
                (Some('/'), Some('/')) => {
                    self.rest_of_line();
                }
                (Some('/'), Some('*')) => {
                    let (line, column) = (self.line, self.column);
                    self.next();
                    self.next();
                    loop {
                        match (self.peek(0), self.peek(1)) {
                            (Some('*'), Some('/')) => break,
                            (None, _) => {
                                return Err(Mistake { line, column, message: "`/*` without `*/`".into() });
                            }
                            _ => {
                                self.next();
                            }
                        }
                    }
                    self.next();
                    self.next();
                }
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self) -> Result<Token, String> {
        let first = self.next().ok_or("expected a token")?;
        match first {
            '"' => self.until("\"").map(Token::Text).ok_or("unterminated string".into()),
            '`' => self.until("`").map(Token::Command).ok_or("command without a closing backtick".into()),
            '%' if self.peek(0) == Some('{') => {
                self.next();
                self.until("}%").map(Token::Code).ok_or("`%{` without `}%`".into())
            }
            '.' if self.peek(0) == Some('.') && self.peek(1) == Some('.') => {
                self.next();
                self.next();
                Ok(Token::Ellipsis)
            }
            '.' if self.peek(0).is_some_and(|c| c.is_ascii_digit()) => {
                let digits = self.word("");
                if digits.chars().all(|c| c.is_ascii_digit()) {
                    Ok(Token::Number(format!("0.{digits}")))
                } else {
                    Err(format!("`.{digits}`: expected a number"))
                }
            }
            c if c.is_ascii_alphanumeric() || c == '_' => self.name_or_number(c),
            c if "+-*~<>()[]{}=,|:;.!/&".contains(c) => Ok(Token::Sign(c)),
            c => Err(format!("unexpected character `{c}`")),
        }
    }

    fn word(&mut self, start: &str) -> String {
        let mut word = start.to_owned();
        while let Some(c) = self.peek(0).filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            word.push(c);
            self.next();
        }
        word
    }

    fn name_or_number(&mut self, first: char) -> Result<Token, String> {
        let word = self.word(&first.to_string());
        if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            return u64::from_str_radix(digits, 16)
                .map(Token::Hex)
                .map_err(|_| format!("`{word}`: expected a hexadecimal number of at most 64 bits"));
        }
        if !word.chars().all(|c| c.is_ascii_digit()) {
            return Ok(Token::Word(word));
        }
        let has_fraction = self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit());
        if !has_fraction {
            // `1.` with nothing after it, but not `1...`.
            if self.peek(0) == Some('.') && self.peek(1) != Some('.') && self.peek(1).is_some_and(char::is_whitespace) {
                self.next();
            }
            return Ok(Token::Number(word));
        }
        self.next();
        let fraction = self.word("");
        if fraction.chars().all(|c| c.is_ascii_digit()) {
            Ok(Token::Number(format!("{word}.{fraction}")))
        } else {
            Err(format!("`{word}.{fraction}`: expected a number"))
        }
    }

    /// The text up to `end`, which is consumed.
    fn until(&mut self, end: &str) -> Option<String> {
        let mut text = String::new();
        loop {
            if end.chars().enumerate().all(|(n, c)| self.peek(n) == Some(c)) {
                end.chars().for_each(|_| {
                    self.next();
                });
                return Some(text);
            }
            text.push(self.next()?);
        }
    }
}
