//! Sweeps: a scenario run over many values of its keys, over transports and over gateways, with the same seeds for all.
//!
//! [`Spec`] reads a sweep file. [`Plan`] lists the runs that are still to be done; [`run_point`] does one, and is
//! a pure function of the [`Job`]; [`Store`] keeps its [`Row`] on disk. [`sweep()`] combines the three on the threads of this
//! machine. An executor on other machines combines them differently: see [`Portable`].
//!
//! Reading order: `spec`, the file and its points; `plan`, the runs, and `stop`, their number; `key` and `row`, the key and the
//! results of a run; `store`, the results on disk; `work`, the `threads`; `summary` and `table`, the results of the sweep.
#![forbid(unsafe_code)]

pub mod board;
mod candidate;
mod estimate;
mod key;
mod plan;
mod ranks;
mod row;
mod run;
mod spec;
mod stop;
mod store;
mod summary;
mod table;
mod threads;
mod work;

pub use candidate::Candidate;
pub use key::{ENGINE, Key};
pub use plan::{Job, Plan, PlanError, Progress, SurveyError};
pub use ranks::Median;
pub use row::{FlowRow, Row, RowError};
pub use run::{Portable, PortableError, run_point, run_portable};
pub use spec::{Axis, Base, Design, Find, Range, Scale, Setting, Shipped, Spec, Values, reference, schema};
pub use stop::{Stop, Tolerance};
pub use store::{Holdings, Store, StoreError};
pub use summary::{CandidateSummary, PointSummary, Summary};
pub use table::{Lines, write_table};
pub use threads::ThreadsError;
pub use work::{SweepError, sweep};
