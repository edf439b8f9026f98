//! packetdrill's language, from text to a tree.
//!
//! Reading order: [`ast`] what a script is; [`lex`] text to tokens, with `#ifdef` and comments taken out; [`parse`] tokens
//! to the tree; [`code`] the Python of `%{ }%`.

pub mod ast;
pub mod code;
pub mod lex;
pub mod parse;

use std::fmt;

/// A mistake in a script, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1 on.
    pub line: u32,
    /// Column, from 1 on.
    pub column: u32,
    /// What is there and what was expected.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for Mistake {}

/// Why there is no tree of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The script is wrong.
    Mistake(Mistake),
    /// The script is about something that does not exist here, such as another protocol: the feature's name.
    Foreign(&'static str),
}
