//! The pipes of a send: what is read from the agent, what is written to it.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

/// The most that is read at once.
const CHUNK: usize = 64 * 1024;

/// A stream being read.
pub(super) struct Source<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Source<R> {
    pub(super) fn new(pipe: Option<R>) -> Self {
        Self {
            pipe,
            buffer: vec![0; CHUNK],
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads some bytes; 0 means the stream has ended and is closed now. A
    /// stream that cannot be read has ended too.
    pub(super) async fn read(&mut self) -> usize {
        let read = match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => 0,
        };
        if read == 0 {
            self.pipe = None;
        }
        read
    }

    pub(super) fn bytes(&self, read: usize) -> &[u8] {
        self.buffer.get(..read).unwrap_or(&[])
    }
}

/// What is being written to stdin.
#[derive(Default)]
pub(super) struct Input {
    pub(super) pipe: Option<ChildStdin>,
    waiting: Vec<u8>,
    /// How many of them are written.
    written: usize,
    /// Whether stdin stays open once nothing waits.
    keep: bool,
}

impl Input {
    pub(super) const fn new(waiting: Vec<u8>, keep: bool) -> Self {
        Self {
            pipe: None,
            waiting,
            written: 0,
            keep,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.pipe.is_some() && (!self.waiting.is_empty() || !self.keep)
    }

    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        self.waiting.extend(bytes);
    }

    /// Nothing comes any more: the pipe closes after what waits.
    pub(super) fn finish(&mut self) {
        self.keep = false;
    }

    /// Writes some bytes. 0 means that nothing more can or need be written; an
    /// agent that does not read its prompt to the end has its reasons.
    pub(super) async fn write(&mut self) -> usize {
        match &mut self.pipe {
            Some(pipe) => {
                let left = self.waiting.get(self.written..).unwrap_or(&[]);
                pipe.write(left).await.unwrap_or(0)
            }
            None => 0,
        }
    }

    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written >= self.waiting.len() {
            self.waiting.clear();
            self.written = 0;
        }
        if bytes == 0 || (self.waiting.is_empty() && !self.keep) {
            self.pipe = None;
        }
    }
}
