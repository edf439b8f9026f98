//! Tests of the estimates on captures whose truth is known.

mod captures;
mod files;
mod formats;
mod hostile;
/// Tests that compute for long. `make test` runs them while those in `real_time` wait.
mod long {
    mod limits;
    mod several;
    mod truth;
}
mod paced;
mod seeds;
