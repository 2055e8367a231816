//! Reads what a trace file holds beyond what the store has.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jig_protocol::event::Event;
use jig_protocol::ids::AttemptId;

use crate::store::{Store, StoreError, events, trace_path};

/// A line of the trace is an event, whose payload is bounded; a longer one is
/// no line of ours.
const LINE_BYTES: u64 = 1024 * 1024;
/// Events per transaction when a long tail is read.
const BATCH: usize = 1_000;

/// Why a trace file could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum TraceError {
    #[error("cannot read the trace file")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A trace file being read from its start.
#[derive(Debug)]
pub(super) struct TraceTail {
    lines: BufReader<File>,
    /// Events up to here are stored already.
    stored: u64,
    /// Whole lines that hold no event.
    unreadable: u64,
}

impl TraceTail {
    /// Opens an attempt's trace to read what the store lacks of it.
    pub(super) async fn open(store: &Store, attempt: AttemptId) -> Result<Self, TraceError> {
        let (count, highest) = events::extent(store.reader().await?.db(), attempt).await?;
        // With a gap below the highest, everything is offered again; what is
        // stored stays as it is.
        let stored = if count == highest { highest } else { 0 };
        Ok(Self::open_file(
            &trace_path(store.data_dir(), attempt),
            stored,
        )?)
    }

    fn open_file(path: &Path, stored: u64) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .custom_flags(
                (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK)
                    .bits()
                    .cast_signed(),
            )
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        Ok(Self {
            lines: BufReader::new(file),
            stored,
            unreadable: 0,
        })
    }

    /// How many whole lines were no events.
    pub(super) const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// The next events the store lacks, and whether there may be more. A last
    /// line without its end was being written when its process died: it was
    /// never announced and is left out.
    pub(super) fn next_batch(&mut self) -> io::Result<(Vec<Event>, bool)> {
        let mut batch = Vec::new();
        let mut line = Vec::new();
        while batch.len() < BATCH {
            line.clear();
            let read = (&mut self.lines)
                .take(LINE_BYTES)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok((batch, false));
            }
            if line.last() != Some(&b'\n') {
                if !self.skip_line()? {
                    return Ok((batch, false));
                }
                self.unreadable += 1;
                continue;
            }
            match serde_json::from_slice::<Event>(&line) {
                Ok(event) if event.seq == 0 => self.unreadable += 1,
                Ok(event) if event.seq > self.stored => batch.push(event),
                Ok(_) => {}
                Err(_) => self.unreadable += 1,
            }
        }
        Ok((batch, true))
    }

    /// Skips the rest of a line; whether it had an end.
    fn skip_line(&mut self) -> io::Result<bool> {
        loop {
            let buffer = self.lines.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(buffer.len(), |end| end + 1);
            self.lines.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn line(seq: u64) -> String {
        format!(
            "{{\"seq\":{seq},\"type\":\"log\",\"name\":\"agent_text\",\
             \"started_at\":\"2025-01-01T00:00:00.000000Z\"}}\n"
        )
    }

    fn read(text: &[u8], stored: u64) -> (Vec<u64>, u64) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        fs::write(&path, text).unwrap();
        let mut tail = TraceTail::open_file(&path, stored).unwrap();
        let mut seqs = Vec::new();
        loop {
            let (batch, more) = tail.next_batch().unwrap();
            seqs.extend(batch.iter().map(|event| event.seq));
            if !more {
                return (seqs, tail.unreadable());
            }
        }
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_a_broken_one_is_counted() {
        let mut text = [line(1), line(2), "{\"seq\":3\n".to_owned(), line(4)].concat();
        text.push_str(&line(5)[..20]);
        assert_eq!(read(text.as_bytes(), 1), (vec![2, 4], 1));
        assert_eq!(read(b"", 0), (vec![], 0));
    }

    #[test]
    fn a_line_longer_than_any_event_is_skipped_whole() {
        let long = "x".repeat(3 * 1024 * 1024);
        let text = [line(1), format!("{long}\n"), line(2), long].concat();
        assert_eq!(read(text.as_bytes(), 0), (vec![1, 2], 1));
    }

    #[test]
    fn a_long_trace_comes_in_batches() {
        let text: String = (1..=2_500).map(line).collect();
        assert_eq!(
            read(text.as_bytes(), 100).0,
            (101..=2_500).collect::<Vec<_>>()
        );
    }

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("real"), line(1)).unwrap();
        let link = dir.path().join("trace.jsonl");
        std::os::unix::fs::symlink("real", &link).unwrap();
        assert!(TraceTail::open_file(&link, 0).is_err());
    }
}
