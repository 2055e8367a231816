//! Files that grow, and a list that may not.

use xtask::finding::Finding;
use xtask::size;

use crate::fixture::{Fixture, none, only};

const FILE: &str = "crates/a/src/lib.rs";
const LIST: &str = "xtask/rules/size.toml";

fn fixture(lines: usize, rules: &str) -> Fixture {
    let fixture = Fixture::empty();
    fixture.write(LIST, rules);
    fixture.write(FILE, &"fn f() {}\n".repeat(lines));
    fixture
}

fn check(fixture: &Fixture) -> Vec<Finding> {
    size::check(&fixture.workspace(), &fixture.sources()).unwrap()
}

fn granted(lines: usize) -> String {
    format!(
        "limit = 10\nexceptions_at_most = 1\n[[exception]]\npath = \"{FILE}\"\nlines = {lines}\nreason = \"one table\"\n"
    )
}

const NONE_GRANTED: &str = "limit = 10\nexceptions_at_most = 0\n";

#[test]
fn the_limit_is_the_last_length_that_passes() {
    none(&check(&fixture(10, NONE_GRANTED)));
    let findings = check(&fixture(11, NONE_GRANTED));
    assert!(
        only(&findings, "size", FILE)
            .problem
            .starts_with("11 product lines, 1 over")
    );
}

#[test]
fn test_modules_are_not_counted_and_what_follows_them_is() {
    let tests = "#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n";
    let fixture = fixture(10, NONE_GRANTED);
    fixture.write(FILE, &format!("{}{tests}", fixture.read(FILE)));
    none(&check(&fixture));
    fixture.write(FILE, &format!("{}fn after() {{}}\n", fixture.read(FILE)));
    only(&check(&fixture), "size", FILE);
}

#[test]
fn test_files_have_no_limit() {
    let fixture = fixture(1, NONE_GRANTED);
    fixture.write("crates/a/tests/it/long.rs", &"fn f() {}\n".repeat(50));
    none(&check(&fixture));
}

#[test]
fn an_exception_holds_at_its_recorded_size_and_not_beyond() {
    none(&check(&fixture(12, &granted(12))));
    none(&check(&fixture(11, &granted(12))));
    let findings = check(&fixture(13, &granted(12)));
    assert!(
        only(&findings, "size", FILE)
            .problem
            .contains("grown beyond its 12")
    );
}

#[test]
fn an_exception_that_is_not_needed_goes() {
    only(&check(&fixture(10, &granted(12))), "size/list", LIST);
    let gone = fixture(12, &granted(12).replace(FILE, "crates/a/src/gone.rs"));
    let findings = check(&gone);
    assert_eq!(
        findings.len(),
        2,
        "the entry without a file, and the file without an entry"
    );
}

#[test]
fn the_list_cannot_grow_unseen() {
    let rules = granted(12).replace("exceptions_at_most = 1", "exceptions_at_most = 0");
    only(&check(&fixture(12, &rules)), "size/list", LIST);
    let rules = granted(12).replace("exceptions_at_most = 1", "exceptions_at_most = 2");
    only(&check(&fixture(12, &rules)), "size/list", LIST);
}

#[test]
fn rules_that_contradict_themselves_are_errors() {
    let twice = format!(
        "{}[[exception]]\npath = \"{FILE}\"\nlines = 99\nreason = \"r\"\n",
        granted(12)
    );
    let bad = [
        String::new(),
        "limit = 10".to_owned(),
        twice,
        granted(12).replace("one table", ""),
    ];
    for rules in bad {
        let fixture = fixture(12, &rules);
        assert!(
            size::check(&fixture.workspace(), &fixture.sources()).is_err(),
            "{rules}"
        );
    }
}
