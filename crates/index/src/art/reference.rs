//! The reference to a child: its kind and its place, in 32 bits.
//!
//! ```text
//! 31      27                          0
//!  0 kind  │ place, 27 bits            │   a node: what it is, is known before the node's memory is touched
//!  1       place, 31 bits              │   a record: one key with its value
//!  0                                   │   nothing
//! ```

/// What a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum NodeKind {
    /// Nothing.
    None = 0,
    /// Bytes that all keys below have in common.
    Prefix,
    /// Nodes of references to children.
    Inner6,
    Inner12,
    Inner25,
    Inner51,
    Inner256,
    /// Nodes of values, one per last byte of the key.
    Value7,
    Value14,
    Value28,
    Value56,
    Value256,
    /// A key with its value.
    Record,
}

/// How many kinds there are.
pub(crate) const KINDS: usize = NodeKind::Record as usize + 1;

/// Bits of a node's place.
pub(crate) const NODE_BITS: u32 = 27;
/// Bits of a record's place.
pub(crate) const RECORD_BITS: u32 = 31;

/// A reference, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Ref(u32);

/// The kind by the five highest bits.
const KIND_OF: [NodeKind; 32] = {
    use NodeKind::*;
    let mut kinds = [Record; 32];
    let nodes = [
        None, Prefix, Inner6, Inner12, Inner25, Inner51, Inner256, Value7, Value14, Value28,
        Value56, Value256,
    ];
    let mut i = 0;
    while i < 16 {
        kinds[i] = if i < nodes.len() { nodes[i] } else { None };
        i += 1;
    }
    kinds
};

impl Ref {
    pub(crate) const NONE: Ref = Ref(0);

    pub(crate) fn record(place: u32) -> Ref {
        debug_assert!(place < 1 << RECORD_BITS);
        Ref(1 << 31 | place)
    }

    pub(crate) fn node(kind: NodeKind, place: u32) -> Ref {
        debug_assert!(place < 1 << NODE_BITS && !matches!(kind, NodeKind::None | NodeKind::Record));
        Ref((kind as u32) << NODE_BITS | place)
    }

    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> NodeKind {
        KIND_OF[(self.0 >> NODE_BITS) as usize]
    }

    #[inline(always)]
    pub(crate) fn place(self) -> u32 {
        let record = ((self.0 as i32) >> 31) as u32;
        let node_bits = (1 << NODE_BITS) - 1;
        let record_bits = (1 << RECORD_BITS) - 1;
        self.0 & (node_bits | (record & record_bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_and_place_come_back() {
        let most = (1 << NODE_BITS) - 1;
        for (kind, place) in [
            (NodeKind::Prefix, 0),
            (NodeKind::Inner6, most),
            (NodeKind::Value256, 77),
        ] {
            let r = Ref::node(kind, place);
            assert_eq!((r.kind(), r.place(), r.is_none()), (kind, place, false));
        }
        for place in [0, 1, 1 << 27, (1 << RECORD_BITS) - 1] {
            let r = Ref::record(place);
            assert_eq!(
                (r.kind(), r.place(), r.is_none()),
                (NodeKind::Record, place, false)
            );
        }
        assert_eq!(
            (Ref::NONE.kind(), Ref::NONE.is_none()),
            (NodeKind::None, true)
        );
    }
}
