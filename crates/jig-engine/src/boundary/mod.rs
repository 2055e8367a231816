//! The boundary: what an entry may not write stays unwritten or is undone
//! exactly, whoever wrote it.
//!
//! Around every entry the work tree and git's metadata are captured. At its end
//! [`judge()`] decides about each difference without doing anything; then what
//! is breached is restored and looked at again, so that a report says what is
//! really on disk. [`Boundary`] is the road; the decisions are apart from it.

mod differences;
mod enforce;
mod entries;
pub mod judge;
mod metadata;
mod steering;
mod verdict;

pub use entries::{Before, Boundary, EntryKind};
pub use judge::{Difference, Judge, JudgeKind, Judgement, Kind, judge};
pub use verdict::{BoundaryError, Undone, Verdict};
