//! The settings of a link for one direction: those in `forward` or `backward` take precedence over those for both.

use bentpipe_language::error::Problems;
use bentpipe_language::reader::{Item, View};

/// The settings of a direction: its own, and the link's for both directions.
pub(super) struct Direction<'v, 'a> {
    own: Option<&'v View<'a>>,
    common: &'v View<'a>,
}

impl<'v, 'a> Direction<'v, 'a> {
    pub(super) fn new(own: Option<&'v View<'a>>, common: &'v View<'a>) -> Self {
        Direction { own, common }
    }

    /// The table of the direction, if it has one, followed by the link's.
    pub(super) fn views(&self) -> impl Iterator<Item = &'v View<'a>> {
        self.own.into_iter().chain([self.common])
    }

    pub(super) fn get(&self, key: &str) -> Option<Item<'a>> {
        self.own.and_then(|own| own.get(key)).or_else(|| self.common.get(key))
    }

    pub(super) fn require(&self, key: &str, problems: &mut Problems) -> Option<Item<'a>> {
        let item = self.get(key);
        if item.is_none() {
            self.common.missing(key, problems);
        }
        item
    }
}
