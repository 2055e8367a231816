//! Small rules, each broken once.

use xtask::finding::Finding;
use xtask::tidy;

use crate::fixture::{Fixture, none, only};

fn check(fixture: &Fixture) -> Vec<Finding> {
    tidy::check(&fixture.workspace(), &fixture.sources()).unwrap()
}

fn clean() -> Fixture {
    let fixture = Fixture::empty();
    fixture.package("a", "");
    fixture
}

const LIB: &str = "crates/a/src/lib.rs";

#[test]
fn a_clean_crate_passes() {
    let fixture = clean();
    fixture.write(
        "crates/a/src/m/mod.rs",
        "//! M.\nmod x;\npub use x::X;\n#[cfg(test)]\nmod tests { fn t() {} }\n",
    );
    fixture.write(
        "crates/a/tests/it/main.rs",
        "//! Tests.\nmod x;\nfn helper() {}\n",
    );
    fixture.write("crates/a/tests/it/x.rs", "");
    fixture.write(
        "crates/a/src/y.rs",
        "#[expect(dead_code, reason = \"allow(x)\")]\nfn f() {}\n",
    );
    none(&check(&fixture));
}

#[test]
fn a_library_opens_with_its_documentation_and_warns_of_missing_docs() {
    let fixture = clean();
    fixture.write(LIB, "#![warn(missing_docs)]\n//! Late.\n");
    assert!(
        only(&check(&fixture), "tidy/docs", LIB)
            .problem
            .contains("does not open")
    );

    fixture.write(LIB, "//! A.\n// #![warn(missing_docs)]\n");
    assert!(
        only(&check(&fixture), "tidy/docs", LIB)
            .problem
            .contains("missing_docs")
    );

    let fixture = clean();
    fixture.write("crates/a/src/main.rs", "fn main() {}\n");
    only(&check(&fixture), "tidy/docs", "crates/a/src/main.rs");
}

#[test]
fn a_bare_allow_is_named_wherever_it_stands() {
    let bare = [
        "#[allow(dead_code)]\nfn f() {}\n",
        "#![allow(dead_code, reason = \"r\")]\n",
        "#[cfg_attr(unix, allow(dead_code))]\nfn f() {}\n",
        "#[cfg(test)]\nmod t {\n#[allow(dead_code)]\nfn f() {}\n}\n",
    ];
    for text in bare {
        let fixture = clean();
        fixture.write("crates/a/src/x.rs", text);
        only(&check(&fixture), "tidy/allow", "crates/a/src/x.rs");
    }
}

#[test]
fn the_ban_on_unsafe_code_is_lifted_in_one_crate_only() {
    let lifted = "#[expect(unsafe_code, reason = \"r\")]\nfn f() {}\n";
    let fixture = clean();
    fixture.package("jig-process", "");
    fixture.write("crates/jig-process/src/x.rs", lifted);
    none(&check(&fixture));

    for text in [
        lifted,
        "#![warn(unsafe_code)]\n",
        "#[cfg_attr(unix, expect(unsafe_code))]\nfn f() {}\n",
    ] {
        let fixture = clean();
        fixture.write("crates/a/src/x.rs", text);
        only(&check(&fixture), "tidy/unsafe", "crates/a/src/x.rs");
    }
}

#[test]
fn mod_files_hold_no_code() {
    for code in [
        "fn f() {}",
        "impl X {}",
        "struct X;",
        "macro_rules! m { () => {} }",
        "enum E {}",
        "trait T {}",
    ] {
        let fixture = clean();
        fixture.write("crates/a/src/m/mod.rs", &format!("//! M.\n{code}\n"));
        let findings = check(&fixture);
        assert_eq!(
            only(&findings, "tidy/mod", "crates/a/src/m/mod.rs").place,
            "crates/a/src/m/mod.rs:2"
        );
    }
}

#[test]
fn lints_and_versions_come_from_the_workspace() {
    let manifest = "crates/a/Cargo.toml";
    let fixture = clean();
    fixture.edit(manifest, "[lints]\nworkspace = true\n", "");
    only(&check(&fixture), "tidy/lints", manifest);

    let own = [
        "[dependencies]\nx = \"1\"\n",
        "[dev-dependencies]\nx = { version = \"1\" }\n",
        "[build-dependencies.x]\nversion = \"1\"\n",
        "[target.'cfg(unix)'.dependencies]\nx = \"1\"\n",
    ];
    for section in own {
        let fixture = clean();
        fixture.write(manifest, &format!("{}{section}", fixture.read(manifest)));
        assert!(
            only(&check(&fixture), "tidy/versions", manifest)
                .problem
                .contains("`x`"),
            "{section}"
        );
    }
    let fixture = clean();
    fixture.edit(
        "Cargo.toml",
        "[workspace.dependencies]\n",
        "[workspace.dependencies]\nx = \"1\"\n",
    );
    fixture.write(
        manifest,
        &format!(
            "{}[dependencies]\nx.workspace = true\n",
            fixture.read(manifest)
        ),
    );
    none(&check(&fixture));
}

#[test]
fn a_second_test_binary_is_named() {
    for second in ["more.rs", "more/main.rs"] {
        let fixture = clean();
        fixture.write("crates/a/tests/it/main.rs", "");
        fixture.write(&format!("crates/a/tests/{second}"), "");
        let place = format!("crates/a/tests/{}", second.split('/').next().unwrap());
        only(&check(&fixture), "tidy/tests", &place);
    }
}
