//! The body of an answer: pieces, and what may come between them.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::step::Hold;

/// A piece of an answer.
#[derive(Debug)]
pub(super) enum Piece {
    Data(Bytes),
    Hold(Hold),
    /// The connection breaks here.
    Cut,
}

impl Piece {
    pub(super) fn data(data: impl Into<Bytes>) -> Self {
        Self::Data(data.into())
    }

    /// One server-sent event; its name is the `type` of its data.
    pub(super) fn event(data: &serde_json::Value) -> Self {
        let name = data["type"].as_str().unwrap_or_default();
        Self::data(format!("event: {name}\ndata: {data}\n\n"))
    }
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Gives its pieces one after the other, then says that it is through.
pub(super) struct Pieces {
    left: VecDeque<Piece>,
    wait: Option<Wait>,
    /// Whether the pieces so far have been let out before the break.
    flushed: bool,
    served: Option<Box<dyn FnOnce() + Send>>,
}

impl Pieces {
    /// `served` is called when all was handed over.
    pub(super) fn new(
        pieces: impl IntoIterator<Item = Piece>,
        served: impl FnOnce() + Send + 'static,
    ) -> Self {
        Self {
            left: pieces.into_iter().collect(),
            wait: None,
            flushed: false,
            served: Some(Box::new(served)),
        }
    }

    /// After the last piece: it is taken, and whoever reads has all of it.
    fn end_if_through(&mut self) {
        if self.left.is_empty()
            && let Some(served) = self.served.take()
        {
            served();
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            if let Some(wait) = &mut self.wait {
                if wait.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.wait = None;
            }
            match self.left.front() {
                // What was given is written before the connection breaks.
                Some(Piece::Cut) if !self.flushed => {
                    self.flushed = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(_) => {}
                None => {
                    self.end_if_through();
                    return Poll::Ready(None);
                }
            }
            match self.left.pop_front() {
                Some(Piece::Data(data)) => {
                    self.end_if_through();
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Piece::Hold(Hold::Forever)) => {
                    self.wait = Some(Box::pin(std::future::pending()))
                }
                Some(Piece::Hold(Hold::Until(gate))) => self.wait = Some(Box::pin(gate.passed())),
                Some(Piece::Cut) => {
                    return Poll::Ready(Some(Err(io::Error::other("cut as scripted"))));
                }
                None => {}
            }
        }
    }

    /// Exact for a body of data alone, which then has a `content-length`.
    fn size_hint(&self) -> SizeHint {
        let mut total = 0;
        for piece in &self.left {
            match piece {
                Piece::Data(data) => total += data.len() as u64,
                Piece::Hold(_) | Piece::Cut => return SizeHint::default(),
            }
        }
        SizeHint::with_exact(total)
    }
}
