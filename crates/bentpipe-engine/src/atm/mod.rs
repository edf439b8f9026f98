//! ATM: cells, AAL5, and the rates of the lines that carry them.
//!
//! Reading order: [`cell`] has the 53 bytes and their header (ITU-T I.361, I.432.1), [`aal5`] turns packets into
//! cells and back (I.363.5), [`sonet`] has the rates of each layer. [`wire::llc_snap`](crate::wire::llc_snap) is the
//! encapsulation of packets on a virtual channel (RFC 2684). A port that many channels share cell by cell is part of
//! [`link`](crate::link).
//!
//! Not modelled: signalling (SVCs), OAM and resource management cells beyond telling them apart, ABR, the correction of
//! single bits in cell headers (cells with a wrong header check are dropped, I.432.1's detection mode), AAL1 to AAL3/4.

pub mod aal5;
pub mod cell;
pub mod sonet;
