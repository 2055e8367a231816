//! The same work for many things, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;

/// How many threads a tree is worked on with.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8)
}

/// A thread costs more than a few things do.
const WORTH_A_THREAD: usize = 16;

/// Gives every item to `act`, in no certain order; each thread has a `state` of
/// its own. After an error no further item is begun; of several errors the one
/// of the first item is given.
pub(crate) fn for_each<T: Sync, S, E: Send>(
    items: &[T],
    state: impl Fn() -> S + Sync,
    act: impl Fn(&mut S, &T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let work = || {
        let mut state = state();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let Err(error) = act(&mut state, item) else {
                continue;
            };
            // Nobody begins another.
            next.fetch_max(items.len(), Ordering::Relaxed);
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.as_ref().is_none_or(|(first, _)| at < *first) {
                *failed = Some((at, error));
            }
        }
    };
    // What runs git waits for it on the runtime of the thread that it works for.
    let runtime = Handle::try_current().ok();
    std::thread::scope(|scope| {
        for _ in 1..threads().min(items.len() / WORTH_A_THREAD + 1) {
            scope.spawn(|| {
                let _entered = runtime.as_ref().map(Handle::enter);
                work();
            });
        }
        work();
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, error)| Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_met_once_and_the_first_error_counts() {
        let items: Vec<usize> = (0..1_000).collect();
        let met: Vec<AtomicUsize> = items.iter().map(|_| AtomicUsize::new(0)).collect();
        let count = |(): &mut (), at: &usize| -> Result<(), usize> {
            met[*at].fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        assert_eq!(for_each(&items, || (), count), Ok(()));
        assert!(met.iter().all(|met| met.load(Ordering::Relaxed) == 1));

        let refuse = |(): &mut (), at: &usize| {
            if *at == 7 || *at == 8 {
                Err(*at)
            } else {
                Ok(())
            }
        };
        for _ in 0..50 {
            assert_eq!(for_each(&items, || (), refuse), Err(7));
        }
    }

    #[test]
    fn nothing_is_begun_after_an_error() {
        let items: Vec<usize> = (0..100_000).collect();
        let begun = AtomicUsize::new(0);
        let failed = for_each(
            &items,
            || (),
            |(), at| {
                begun.fetch_add(1, Ordering::Relaxed);
                if *at == 0 { Err(()) } else { Ok(()) }
            },
        );
        assert_eq!(failed, Err(()));
        assert!(begun.load(Ordering::Relaxed) < items.len());
    }
}
