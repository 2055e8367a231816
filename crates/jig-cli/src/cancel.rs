//! Interrupts: SIGINT, SIGTERM and SIGHUP mean the same.
//!
//! The first asks the run to stop and lets it unwind. The second ends the
//! program at once; the supervisors then end what it started, because the pipe
//! they watch closes with it.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit_code::Exit;

/// Whether an interrupt has come; cloned to whoever waits for one.
pub(crate) type Interrupt = watch::Receiver<bool>;

/// Starts listening. From here on the signals' defaults no longer apply.
pub(crate) fn listen() -> std::io::Result<Interrupt> {
    let mut signals = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ]
    .into_iter()
    .map(signal)
    .collect::<std::io::Result<Vec<_>>>()?;
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        any(&mut signals).await;
        sender.send_replace(true);
        any(&mut signals).await;
        std::process::exit(Exit::Interrupted as i32);
    });
    Ok(receiver)
}

/// Ready once any of the signals has come.
async fn any(signals: &mut [Signal]) {
    std::future::poll_fn(|cx| {
        if signals
            .iter_mut()
            .any(|signal| signal.poll_recv(cx).is_ready())
        {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}
