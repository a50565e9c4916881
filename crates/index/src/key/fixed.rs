//! Values of fixed size as big-endian numbers in their order.

/// A value of a fixed number of bytes: `bool`, an integer, `f32` or `f64`.
pub trait Fixed: Copy + sealed::Ordered {}

/// A [`Fixed`] of up to 64 bits, which is a key by itself.
pub trait Word: Fixed {}

mod sealed {
    pub trait Ordered: Sized {
        /// The number of which the value has the bytes; of more than 64 bits only the last.
        fn word(self) -> u64;
        /// Appends the bytes of the value.
        fn append(self, bytes: &mut Vec<u8>);
        /// Takes a value from the front; `None` if there are too few bytes.
        fn take(bytes: &mut &[u8]) -> Option<Self>;
    }
}

macro_rules! fixed {
    ($($type:ty as $unsigned:ty: $encode:expr, $decode:expr;)*) => {$(
        impl Fixed for $type {}
        impl sealed::Ordered for $type {
            fn word(self) -> u64 {
                let encode: fn($type) -> $unsigned = $encode;
                encode(self) as u64
            }
            fn append(self, bytes: &mut Vec<u8>) {
                let encode: fn($type) -> $unsigned = $encode;
                bytes.extend_from_slice(&encode(self).to_be_bytes());
            }
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                let decode: fn($unsigned) -> $type = $decode;
                Some(decode(<$unsigned>::from_be_bytes(*first)))
            }
        }
    )*};
}

macro_rules! word {
    ($($type:ty)*) => {$(impl Word for $type {})*};
}

/// Flips the sign bit, and of negative floats all others too.
macro_rules! signed {
    ($($type:ident as $unsigned:ident),*) => {
        fixed! { $($type as $unsigned:
            |value| value as $unsigned ^ 1 << ($unsigned::BITS - 1),
            |bits| (bits ^ 1 << ($unsigned::BITS - 1)) as $type;)* }
    };
}
macro_rules! float {
    ($($type:ident as $unsigned:ident / $signed:ident),*) => {
        fixed! { $($type as $unsigned:
            |value| {
                let bits = value.to_bits();
                bits ^ ((bits as $signed >> ($unsigned::BITS - 1)) as $unsigned | 1 << ($unsigned::BITS - 1))
            },
            |bits| {
                let negative = !(bits as $signed >> ($unsigned::BITS - 1)) as $unsigned;
                $type::from_bits(bits ^ (negative | 1 << ($unsigned::BITS - 1)))
            };)* }
    };
}

fixed! {
    bool as u8: u8::from, |bits| bits != 0;
    u8 as u8: |value| value, |bits| bits;
    u16 as u16: |value| value, |bits| bits;
    u32 as u32: |value| value, |bits| bits;
    u64 as u64: |value| value, |bits| bits;
}
signed!(i8 as u8, i16 as u16, i32 as u32, i64 as u64, i128 as u128);
float!(f32 as u32 / i32, f64 as u64 / i64);
word!(bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

/// Bytes of the least integer that holds every unscaled value of so many digits.
pub(super) fn decimal_bytes(precision: u8) -> usize {
    match precision {
        0..=2 => 1,
        3..=4 => 2,
        5..=9 => 4,
        10..=18 => 8,
        _ => 16,
    }
}
