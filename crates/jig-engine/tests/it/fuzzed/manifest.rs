//! The reader of an attempt's manifest.

use std::fs;

use jig_engine::host::Manifest;

pub(crate) fn check(data: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("manifest.json");
    assert!(Manifest::read(&path).unwrap().is_none());
    fs::write(&path, data).unwrap();
    let read = Manifest::read(&path);
    assert_eq!(fs::read(&path).unwrap(), data, "reading changes nothing");
    let manifest = match read {
        Ok(manifest) => manifest.unwrap(),
        Err(error) => {
            assert!(error.to_string().contains("manifest.json"), "{error}");
            return;
        }
    };
    assert_eq!(manifest.schema, 1);
    let text = serde_json::to_vec(&manifest).unwrap();
    fs::write(&path, &text).unwrap();
    assert_eq!(Manifest::read(&path).unwrap().as_ref(), Some(&manifest));
    // Torn anywhere it is an error, and never an attempt with fewer processes.
    for cut in (0..text.len()).step_by(text.len() / 16 + 1) {
        fs::write(&path, &text[..cut]).unwrap();
        assert!(Manifest::read(&path).is_err(), "{cut}");
    }
}
