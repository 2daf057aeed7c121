//! Reading ahead: while one batch is computed with, the next one is fetched.

use crate::GenomeError;
use sudare_ring::interrupt::Shared;

/// `work(batch, load(batch))` for each batch in order; the next batch is loaded on a thread of its own meanwhile, which ends
/// early where the work does.
///
/// # Errors
/// The first of either.
pub fn ahead<B: Sync, L: Send>(
    batches: &[B],
    load: impl Fn(&B) -> Result<L, GenomeError> + Sync,
    mut work: impl FnMut(&B, L) -> Result<(), GenomeError>,
) -> Result<(), GenomeError> {
    let shared = Shared::here();
    let mut next = batches.first().map(&load).transpose()?;
    for (i, batch) in batches.iter().enumerate() {
        let Some(loaded) = next.take() else { return Ok(()) };
        next = match batches.get(i + 1) {
            None => {
                work(batch, loaded)?;
                None
            }
            Some(following) => std::thread::scope(|scope| {
                let reader = scope.spawn(|| shared.run(|| load(following)));
                work(batch, loaded)?;
                match reader.join() {
                    Ok(Ok(loaded)) => loaded.map(Some),
                    // A reader that panicked, or was asked to end, reads again here, where that is seen.
                    _ => load(following).map(Some),
                }
            })?,
        };
    }
    Ok(())
}
