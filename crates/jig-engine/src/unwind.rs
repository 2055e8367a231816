//! Panics stop at the attempt that they happened in.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future whose panic is its value.
pub(crate) struct Caught<'a, T>(Pin<Box<dyn Future<Output = T> + Send + 'a>>);

/// Runs `work` to its end, or to its panic, whose message is the error.
///
/// What `work` borrows may be half-changed after a panic: the caller treats it
/// as the state of something that broke, not of something that succeeded.
pub(crate) fn caught<'a, T>(work: impl Future<Output = T> + Send + 'a) -> Caught<'a, T> {
    Caught(Box::pin(work))
}

impl<T> Future for Caught<'_, T> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(message(panic.as_ref()))),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", said.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_value() {
        assert_eq!(caught(async { 7 }).await, Ok(7));
        let loud = caught(async {
            tokio::task::yield_now().await;
            if std::hint::black_box(true) {
                panic!("it {}", "broke");
            }
        });
        assert_eq!(loud.await, Err("a panic: it broke".to_owned()));
    }
}
