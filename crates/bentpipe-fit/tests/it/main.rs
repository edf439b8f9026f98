//! Tests of the estimates on captures whose truth is known.

mod captures;
mod files;
mod formats;
mod hostile;
mod limits;
mod seeds;
mod several;
mod truth;
