//! A control behind a pointer: large ones would make every connection as large, and few connections have them.

use core::ops::{Deref, DerefMut};

use super::bbr::Bbr;
use super::bbr3::Bbr3;
use crate::tcp::config::TcpConfig;

/// The control.
#[derive(Clone, Debug)]
pub(super) struct Boxed<C>(Box<C>);

impl Boxed<Bbr> {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Boxed(Box::new(Bbr::new(config)))
    }
}

impl Boxed<Bbr3> {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Boxed(Box::new(Bbr3::new(config)))
    }
}

impl<C> Deref for Boxed<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C> DerefMut for Boxed<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.0
    }
}
