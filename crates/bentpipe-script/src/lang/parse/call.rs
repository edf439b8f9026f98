//! System calls and their arguments.

use super::super::ast::{Call, Expr};
use super::super::lex::Token;
use super::{Parsed, Parser};

/// Max nesting of an argument.
const DEEPEST: u32 = 20;

impl Parser {
    pub(super) fn call(&mut self, until: Option<i64>) -> Parsed<Call> {
        let name = self.any_word("the name of a call")?;
        self.sign('(')?;
        let arguments = self.list(')', 0)?;
        self.sign('=')?;
        let result = self.expr(0)?;
        let mut errno = None;
        if let Some(Token::Word(word)) = self.peek()
            && word.starts_with('E')
        {
            errno = Some(word.clone());
            self.at += 1;
        }
        // A remark for the reader: (Resource temporarily unavailable).
        if self.take('(') {
            while !self.take(')') {
                if self.next().is_none() {
                    return self.expected("`)`");
                }
            }
        }
        Ok(Call { until, name, arguments, result, errno })
    }

    /// Expressions up to `end`, which is consumed.
    fn list(&mut self, end: char, depth: u32) -> Parsed<Vec<Expr>> {
        let mut list = Vec::new();
        if self.take(end) {
            return Ok(list);
        }
        loop {
            list.push(self.expr(depth + 1)?);
            if self.take(end) {
                return Ok(list);
            }
            if !self.take(',') {
                return self.expected(&format!("`,` or `{end}`"));
            }
        }
    }

    fn expr(&mut self, depth: u32) -> Parsed<Expr> {
        if depth > DEEPEST {
            return self.expected("fewer brackets");
        }
        let first = self.operand(depth)?;
        if !self.is_sign('|') {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.take('|') {
            all.push(self.operand(depth)?);
        }
        Ok(Expr::Or(all))
    }

    fn operand(&mut self, depth: u32) -> Parsed<Expr> {
        let what = "an argument";
        match self.peek() {
            Some(Token::Ellipsis) => {
                self.at += 1;
                Ok(Expr::Any)
            }
            Some(Token::Number(_) | Token::Hex(_)) => Ok(Expr::Int(self.number(what, i64::MAX as u64)? as i64)),
            Some(Token::Sign('-')) => {
                self.at += 1;
                Ok(Expr::Int(-(self.number("a number", i64::MAX as u64)? as i64)))
            }
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                // "..."...: the string is a prefix.
                if self.peek() == Some(&Token::Ellipsis) {
                    self.at += 1;
                }
                Ok(Expr::Text(text))
            }
            Some(Token::Sign('[')) => {
                self.at += 1;
                self.list(']', depth).map(Expr::List)
            }
            Some(Token::Sign('{')) => {
                self.at += 1;
                self.list('}', depth).map(Expr::Struct)
            }
            Some(Token::Word(_)) => {
                let word = self.any_word(what)?;
                let subject = if self.take('(') { Expr::Of(word, self.list(')', depth)?) } else { Expr::Word(word) };
                if self.take('=') {
                    return Ok(Expr::Field(Box::new(subject), Box::new(self.expr(depth + 1)?)));
                }
                Ok(subject)
            }
            _ => self.expected(what),
        }
    }
}
