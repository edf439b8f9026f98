//! packetdrill's language, from text to a tree.
//!
//! Reading order: [`ast`] the tree; [`lex`] text to tokens, with `#ifdef` and comments
//! removed; [`parse`] tokens to the tree; [`code`] the Python of `%{ }%`.

pub mod ast;
pub mod code;
pub mod lex;
pub mod parse;

use std::fmt;

/// A mistake in a script, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// The text found and what was expected.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for Mistake {}

/// Why a script cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The script is wrong.
    Mistake(Mistake),
    /// The script needs something unsupported, such as another protocol: the feature's name.
    Foreign(&'static str),
}
