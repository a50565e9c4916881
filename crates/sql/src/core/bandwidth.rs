//! What memory delivers, for whoever wants to hold what a statement read against it.

use super::Core;
use eris_numa::measure::ReadBandwidth;

impl Core {
    /// What each AEU can read, measured when somebody asks for it first, in a tenth of a second or so. `None`: it cannot be measured now,
    /// for want of memory.
    pub async fn read_bandwidth(&self) -> Option<&ReadBandwidth> {
        let measured = self.bandwidth.get_or_try_init(async || {
            let engine = self.engine.clone();
            let measure = move || ReadBandwidth::measure(engine.topology(), engine.memory()).ok();
            let measured = tokio::task::spawn_blocking(measure).await;
            measured.ok().flatten().ok_or(())
        });
        measured.await.ok()
    }
}
