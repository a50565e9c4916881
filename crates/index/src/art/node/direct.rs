//! The inner node that has a reference for every byte.
//!
//! ```text
//! [ref of 0][ref of 1] … [ref of 255]      16 lines of 16 references
//! ```
//! It does not count its children, because that number would be a second line to touch. They are counted when a removal
//! leaves at most two in its line: rarely, and in time, for the children of a node that has become too large are rarely
//! crowded in few lines. Where they are, it stays as it is until they get fewer there; the last two are always noticed.

use super::{BranchNode, Remainder, sparse};
use crate::art::reference::Ref;

const PER_LINE: usize = 16;

#[repr(C, align(64))]
pub(crate) struct Direct {
    children: [Ref; 256],
}

impl BranchNode for Direct {
    type Child = Ref;
    const FAR: bool = false;

    #[inline(always)]
    fn locate(&self, byte: u8) -> Option<&Ref> {
        let child = &self.children[byte as usize];
        (!child.is_none()).then_some(child)
    }

    fn find_mut(&mut self, byte: u8) -> Option<&mut Ref> {
        let child = &mut self.children[byte as usize];
        (!child.is_none()).then_some(child)
    }

    fn ceil(&self, from: u16) -> Option<(u8, Ref)> {
        let rest = self.children.get(from as usize..)?;
        let skipped = rest.iter().position(|child| !child.is_none())?;
        Some(((from as usize + skipped) as u8, rest[skipped]))
    }

    fn floor(&self, below: u16) -> Option<(u8, Ref)> {
        let byte = self.children[..below as usize]
            .iter()
            .rposition(|child| !child.is_none())?;
        Some((byte as u8, self.children[byte]))
    }

    fn entries(&self) -> impl Iterator<Item = (u8, Ref)> {
        let all = self.children.iter().enumerate();
        all.filter(|(_, child)| !child.is_none())
            .map(|(byte, child)| (byte as u8, *child))
    }

    fn fill(&mut self, entries: impl Iterator<Item = (u8, Ref)>) {
        self.children = [Ref::NONE; 256];
        for (byte, child) in entries {
            self.children[byte as usize] = child;
        }
    }

    fn add(&mut self, byte: u8, child: Ref) -> bool {
        self.children[byte as usize] = child;
        true
    }

    fn remove(&mut self, byte: u8) -> Remainder {
        self.children[byte as usize] = Ref::NONE;
        let count = |children: &[Ref]| children.iter().filter(|child| !child.is_none()).count();
        let line = byte as usize / PER_LINE * PER_LINE;
        if count(&self.children[line..line + PER_LINE]) > 2 {
            return Remainder::Right;
        }
        match count(&self.children) {
            0 => Remainder::Empty,
            1 => Remainder::Single,
            left if left <= sparse(51) => Remainder::Sparse,
            _ => Remainder::Right,
        }
    }
}
