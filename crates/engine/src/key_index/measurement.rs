//! What an owner says of the use of its segments.

use super::measure::{Measurement, SegmentLoad};
use super::owned::OwnedKeys;

impl OwnedKeys {
    /// Its segments, and what they were asked for since the last call.
    pub fn measurement(&mut self) -> Measurement {
        let aeu = self.aeu();
        let done = self.object().measured.done(aeu);
        let keys: Vec<usize> = self
            .segments
            .iter()
            .map(|segment| self.len_of(segment))
            .collect();
        let segments = self.segments().iter_mut().zip(keys);
        let segments = segments.map(|(segment, keys)| {
            let asked = segment.take_asked();
            let busy = asked.busy();
            let mut samples = asked.samples;
            samples.sort_unstable();
            SegmentLoad {
                aeu,
                low: segment.low,
                high: segment.high,
                keys: keys as u64,
                bytes: segment.bytes(),
                asked: asked.keys,
                busy,
                samples,
            }
        });
        Measurement {
            aeu,
            done,
            segments: segments.collect(),
        }
    }
}
