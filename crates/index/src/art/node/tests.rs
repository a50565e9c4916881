use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A node against a map of bytes: what was added and removed, in what order, from which side it is seen.
fn agrees<N: BranchNode>(
    actions: &[(u8, bool)],
    child: impl Fn(u8) -> N::Child,
    number: impl Fn(N::Child) -> u64,
) {
    let mut slot = Box::<N>::new_uninit();
    // SAFETY: any bytes are a node; what was in a slot before is no matter.
    let mut node = unsafe {
        slot.as_mut_ptr()
            .cast::<u8>()
            .write_bytes(0xA5, size_of::<N>());
        slot.assume_init()
    };
    node.fill(std::iter::empty());
    let mut model = BTreeMap::new();
    for &(byte, adding) in actions {
        if adding && !model.contains_key(&byte) {
            let before = model.len();
            if node.add(byte, child(byte)) {
                model.insert(byte, number(child(byte)));
            } else {
                let room = (size_of::<N>() - 1) / (1 + size_of::<N::Child>());
                assert_eq!(before, room, "a full node rejects");
            }
        } else if !adding && model.remove(&byte).is_some() {
            let shape = node.remove(byte);
            match model.len() {
                0 => assert_eq!(shape, Remainder::Empty),
                1 => assert_eq!(shape, Remainder::Single),
                _ => assert!(matches!(shape, Remainder::Sparse | Remainder::Right)),
            }
        }
        let next = model
            .range(byte..)
            .next()
            .map(|(byte, number)| (*byte, *number));
        assert_eq!(
            node.ceil(byte.into())
                .map(|(byte, child)| (byte, number(child))),
            next
        );
        let last = model
            .range(..byte)
            .next_back()
            .map(|(byte, number)| (*byte, *number));
        assert_eq!(
            node.floor(byte.into())
                .map(|(byte, child)| (byte, number(child))),
            last
        );
        assert_eq!(node.find(byte).map(&number), model.get(&byte).copied());
        assert_eq!(
            node.find_mut(byte).map(|child| number(*child)),
            model.get(&byte).copied()
        );
    }
    assert!(node.ceil(256).is_none() && node.floor(0).is_none());
    assert!(
        node.entries()
            .map(|(byte, child)| (byte, number(child)))
            .eq(model)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 300 }))]

    #[test]
    fn every_class_is_a_map_of_bytes(
        values in 1..=256u16,
        actions in prop::collection::vec((any::<u8>(), prop::bool::weighted(0.7)), 1..if cfg!(miri) { 40 } else { 600 }),
    ) {
        let actions: Vec<_> = actions.iter().map(|(byte, adding)| ((u16::from(*byte) % values) as u8, *adding)).collect();
        let reference = |byte: u8| Ref::record(u32::from(byte) * 3);
        let place = |r: Ref| u64::from(r.place());
        agrees::<Inner6>(&actions, reference, place);
        agrees::<Inner12>(&actions, reference, place);
        agrees::<Inner25>(&actions, reference, place);
        agrees::<Inner51>(&actions, reference, place);
        agrees::<Inner256>(&actions, reference, place);
        let value = |byte: u8| u64::from(byte) << 40 | 1;
        agrees::<Value7>(&actions, value, |value| value);
        agrees::<Value14>(&actions, value, |value| value);
        agrees::<Value28>(&actions, value, |value| value);
        agrees::<Value56>(&actions, value, |value| value);
        agrees::<Value256>(&actions, value, |value| value);
    }
}
