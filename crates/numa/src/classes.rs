//! Size classes of small buffers: steps of 64 bytes up to 512, then four steps per doubling up to 8 KiB.

/// Every buffer's alignment in bytes: a cache line, and the widest vector register.
pub(crate) const ALIGN: usize = 64;

/// A slot size of small buffers, 0..[`CLASSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u8);

pub(crate) const CLASSES: usize = SIZES.len();

/// Slot sizes in bytes: ascending multiples of [`ALIGN`].
const SIZES: [usize; 24] = [
    64, 128, 192, 256, 320, 384, 448, 512, //
    640, 768, 896, 1024, 1280, 1536, 1792, 2048, //
    2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192,
];

impl Class {
    /// The smallest class whose slots hold `bytes`; `None` beyond the largest.
    pub(crate) fn of(bytes: usize) -> Option<Class> {
        let index = SIZES.partition_point(|&size| size < bytes);
        (index < CLASSES).then_some(Class(index as u8))
    }

    /// Bytes of a slot.
    pub(crate) fn bytes(self) -> usize {
        SIZES[self.index()]
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn all() -> impl Iterator<Item = Class> {
        (0..CLASSES as u8).map(Class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_small_size_fits_its_class_with_little_waste() {
        let most = SIZES[CLASSES - 1];
        assert_eq!(most, 8 << 10);
        for bytes in 1..=most {
            let slot = Class::of(bytes).unwrap().bytes();
            assert!(slot >= bytes && slot.is_multiple_of(ALIGN));
            assert!(
                slot - bytes < ALIGN.max(bytes / 4 + 1),
                "{bytes} bytes in a slot of {slot}"
            );
        }
        assert_eq!(Class::of(most + 1), None);
    }
}
