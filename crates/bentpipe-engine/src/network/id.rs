//! Typed indices, which cannot be confused with each other.

/// Defines types of indices: `ids! { /// A link. LinkId }`.
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The first `count` indices, in order.
            pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
                (0..count).map(Self::from)
            }
        }

        impl From<usize> for $name {
            #[inline(always)]
            fn from(index: usize) -> Self {
                debug_assert!(index <= u32::MAX as usize);
                $name(index as u32)
            }
        }
    )*};
}
