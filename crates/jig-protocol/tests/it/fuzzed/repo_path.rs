//! The JSON form of paths, and paths that somebody claims.

use jig_protocol::repo_path::RepoPath;

pub(crate) fn check(data: &[u8]) {
    form(&RepoPath::from_bytes(data));
    let text = String::from_utf8_lossy(data);
    if let Some(read) = RepoPath::from_json_form(&text) {
        form(&read);
    }
    if let Some(claimed) = RepoPath::from_claim(&text) {
        claim(&claimed);
    }
}

/// Any bytes have a form that is plain text and reads back as the same bytes.
fn form(path: &RepoPath) {
    let shown = path.to_string();
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    assert_eq!(RepoPath::from_json_form(&shown).as_ref(), Some(path));
    let json = serde_json::to_string(path).unwrap();
    assert_eq!(&serde_json::from_str::<RepoPath>(&json).unwrap(), path);
    if let Some(parent) = path.parent().filter(|parent| !parent.as_bytes().is_empty()) {
        assert_eq!(&parent.join(path.file_name()), path);
    }
}

/// A claim stays inside the tree.
fn claim(path: &RepoPath) {
    for part in path.components() {
        assert!(!part.is_empty() && part != b"." && part != b"..", "{path}");
    }
    assert!(!path.as_bytes().contains(&0));
    let text = std::str::from_utf8(path.as_bytes()).unwrap();
    assert_eq!(RepoPath::from_claim(text).as_ref(), Some(path));
}
