//! Content kept for exact restore.
