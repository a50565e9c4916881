//! What all node classes have in common.
//!
//! ```text
//! kind                     bytes   children           a lookup touches
//! Inner6   Value7             32 · 64                 1 line
//! Inner12  Value14            64 · 128                1 · 2 lines
//! Inner25  Value28           128 · 256                2 lines
//! Inner51  Value56           256 · 512                2 lines
//! Inner256 Value256        1,024 · 2,368              1 line
//! Prefix                      32   1, after ≤ 27 bytes  1 line
//! ```
//!
//! Inner nodes hold references of 32 bits, value nodes values of 64. No node has a header with a prefix: where keys
//! have several bytes in common there is a [`Prefix`] node, so that all others fill their lines with keys and children.

mod direct;
mod lines;
mod prefix;
mod sorted;

pub(crate) use direct::Direct;
pub(crate) use lines::Lines;
pub(crate) use prefix::{PREFIX_BYTES, Prefix};
pub(crate) use sorted::Sorted;

use super::reference::{NodeKind, Ref};

/// A node type that lies in a slot: any bytes are a value of it.
///
/// # Safety
/// Plain numbers without padding, of the size and alignment of slots of its kind.
pub(crate) unsafe trait Node: Sized {
    /// The kind of references to it.
    const KIND: NodeKind;
}

/// A node with a child per byte.
pub(crate) trait BranchNode: Node {
    /// A reference or a value.
    type Child: Copy;

    /// Whether a child may lie far from the bytes that lead to it: neither in their line nor in the next.
    const FAR: bool;

    /// Where the child of a byte is.
    fn locate(&self, byte: u8) -> Option<&Self::Child>;

    /// The child of a byte.
    #[inline(always)]
    fn find(&self, byte: u8) -> Option<Self::Child> {
        self.locate(byte).copied()
    }

    /// The child of a byte, to replace it.
    fn find_mut(&mut self, byte: u8) -> Option<&mut Self::Child>;

    /// The first child whose byte is at least `from`, which may be 256.
    fn ceil(&self, from: u16) -> Option<(u8, Self::Child)>;

    /// The last child whose byte is less than `below`.
    fn floor(&self, below: u16) -> Option<(u8, Self::Child)>;

    /// All children in order.
    fn entries(&self) -> impl Iterator<Item = (u8, Self::Child)>;

    /// Makes these the children, whatever was here; in order, no more than there is room for.
    fn fill(&mut self, entries: impl Iterator<Item = (u8, Self::Child)>);

    /// Adds the child of a byte that has none. `false`: no room, nothing has changed.
    fn add(&mut self, byte: u8, child: Self::Child) -> bool;

    /// Removes the child of a byte that has one.
    fn remove(&mut self, byte: u8) -> Remainder;
}

/// What a removal leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remainder {
    /// No child.
    Empty,
    /// One child.
    Single,
    /// So few children that the next smaller class should hold them.
    Sparse,
    /// Neither.
    Right,
}

/// At how many children a node moves to the next smaller class, which has `room`: late enough that adding and removing
/// in turn does not move it each time.
pub(crate) const fn sparse(room: usize) -> usize {
    room * 3 / 4
}

pub(crate) type Inner6 = Sorted<Ref, 8, 6>;
pub(crate) type Inner12 = Sorted<Ref, 16, 12>;
pub(crate) type Inner25 = Sorted<Ref, 28, 25>;
pub(crate) type Inner51 = Sorted<Ref, 52, 51>;
pub(crate) type Inner256 = Direct;
pub(crate) type Value7 = Sorted<u64, 8, 7>;
pub(crate) type Value14 = Sorted<u64, 16, 14>;
pub(crate) type Value28 = Sorted<u64, 32, 28>;
pub(crate) type Value56 = Sorted<u64, 64, 56>;
pub(crate) type Value256 = Lines;

macro_rules! node {
    ($($name:ident: $kind:ident, $bytes:literal;)*) => {$(
        const _: () = assert!(size_of::<$name>() == $bytes && align_of::<$name>() <= 64);
        // SAFETY: plain numbers; the sum of the fields is the size, so that no padding is left.
        unsafe impl Node for $name {
            const KIND: NodeKind = NodeKind::$kind;
        }
    )*};
}
node! {
    Prefix: Prefix, 32;
    Inner6: Inner6, 32;
    Inner12: Inner12, 64;
    Inner25: Inner25, 128;
    Inner51: Inner51, 256;
    Inner256: Inner256, 1024;
    Value7: Value7, 64;
    Value14: Value14, 128;
    Value28: Value28, 256;
    Value56: Value56, 512;
    Value256: Value256, 2368;
}

/// A node that can grow.
pub(crate) trait Grow: BranchNode {
    /// The next larger class. The largest has room for every byte: it is its own.
    type Larger: BranchNode<Child = Self::Child>;
}

macro_rules! grow {
    ($($name:ident => $larger:ident;)*) => {$(
        impl Grow for $name {
            type Larger = $larger;
        }
    )*};
}
grow! {
    Inner6 => Inner12;
    Inner12 => Inner25;
    Inner25 => Inner51;
    Inner51 => Inner256;
    Inner256 => Inner256;
    Value7 => Value14;
    Value14 => Value28;
    Value28 => Value56;
    Value56 => Value256;
    Value256 => Value256;
}

/// Calls `$body` with `$Type` as the type of the inner or value node of a kind; `$other` for all other kinds.
macro_rules! with_inner {
    ($kind:expr, $Type:ident => $body:expr, $($rest:pat => $other:expr),+) => {
        match $kind {
            NodeKind::Inner6 => {
                type $Type = $crate::art::node::Inner6;
                $body
            }
            NodeKind::Inner12 => {
                type $Type = $crate::art::node::Inner12;
                $body
            }
            NodeKind::Inner25 => {
                type $Type = $crate::art::node::Inner25;
                $body
            }
            NodeKind::Inner51 => {
                type $Type = $crate::art::node::Inner51;
                $body
            }
            NodeKind::Inner256 => {
                type $Type = $crate::art::node::Inner256;
                $body
            }
            $($rest => $other,)+
        }
    };
}
macro_rules! with_value {
    ($kind:expr, $Type:ident => $body:expr, $($rest:pat => $other:expr),+) => {
        match $kind {
            NodeKind::Value7 => {
                type $Type = $crate::art::node::Value7;
                $body
            }
            NodeKind::Value14 => {
                type $Type = $crate::art::node::Value14;
                $body
            }
            NodeKind::Value28 => {
                type $Type = $crate::art::node::Value28;
                $body
            }
            NodeKind::Value56 => {
                type $Type = $crate::art::node::Value56;
                $body
            }
            NodeKind::Value256 => {
                type $Type = $crate::art::node::Value256;
                $body
            }
            $($rest => $other,)+
        }
    };
}
pub(crate) use {with_inner, with_value};

#[cfg(test)]
mod tests;
