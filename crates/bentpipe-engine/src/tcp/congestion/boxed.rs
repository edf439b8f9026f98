//! A control behind a pointer: those with much state would make every connection as large.

use core::ops::{Deref, DerefMut};

use super::bbr::Bbr;
use super::bbr3::Bbr3;
use super::cubic::Cubic;
use super::cubic_linux::CubicLinux;
use super::prague::Prague;
use super::vegas::Vegas;
use super::westwood::Westwood;
use crate::tcp::config::TcpConfig;

/// The control.
#[derive(Clone, Debug)]
pub(super) struct Boxed<C>(Box<C>);

macro_rules! boxed {
    ($($control:ty),+) => {
        $(impl Boxed<$control> {
            pub(super) fn new(config: &TcpConfig) -> Self {
                Boxed(Box::new(<$control>::new(config)))
            }
        })+
    };
}

boxed!(Bbr, Bbr3, Cubic, CubicLinux, Prague, Vegas, Westwood);

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
