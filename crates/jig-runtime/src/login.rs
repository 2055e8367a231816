//! Reading the files of an operator's login.

use std::io::Read as _;
use std::path::Path;

/// A login or a configuration is a few kilobytes; a state file may have grown.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// What a small regular file holds.
///
/// # Errors
///
/// When it is not there, is no regular file, or is larger than 8 MiB.
pub fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    // Asked before it is opened: opening a pipe would wait.
    let is_small_file = |meta: &std::fs::Metadata| meta.is_file() && meta.len() <= MAX_FILE;
    let odd = || std::io::Error::other("not a small regular file");
    if !is_small_file(&std::fs::metadata(path)?) {
        return Err(odd());
    }
    let file = std::fs::File::open(path)?;
    if !is_small_file(&file.metadata()?) {
        return Err(odd());
    }
    let mut content = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(&dir.path().join("missing")).is_err());
        assert!(read(dir.path()).is_err());
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{CWD, Mode, mkfifoat};
            let pipe = dir.path().join("pipe");
            mkfifoat(CWD, &pipe, Mode::RUSR).unwrap();
            assert!(read(&pipe).is_err());
        }
        let file = dir.path().join("file");
        std::fs::write(&file, "said").unwrap();
        assert_eq!(read(&file).unwrap(), b"said");
        let large = std::fs::File::create(&file).unwrap();
        large.set_len(MAX_FILE + 1).unwrap();
        assert!(read(&file).is_err());
    }
}
