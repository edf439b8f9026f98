//! Quotations from RFCs, and digests of the RFCs' texts to check them against.
//!
//! A digest holds hashes of short runs of words, by section; the text cannot be recovered from it.
//! `validation/rfc/README.md` says how the digests are made.

mod check;
mod digest;
mod sections;
mod sources;
#[cfg(test)]
mod tests;

pub(crate) use check::check;
pub(crate) use digest::make;
