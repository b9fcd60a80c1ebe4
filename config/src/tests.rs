//! Tests of the reader: what each kind of value refuses, with line, key, words and fix.

use std::path::PathBuf;
use std::time::Duration;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// All problems of a text as they are shown, without the file.
fn told<T>(text: &str, with: impl FnOnce(&Section<'_>) -> T) -> Vec<String> {
    let problems = read(text, with).err().expect("must be refused");
    let shown = FileError::Wrong {
        path: PathBuf::from("f"),
        problems,
    }
    .to_string();
    shown.lines().map(|line| line[2..].to_owned()).collect()
}

/// Each text with the one problem it has, its line and key left out: the key is `x`, on line 1.
fn each<T>(with: impl Fn(&Section<'_>) -> T, cases: &[(&str, &str)]) {
    for (text, says) in cases {
        assert_eq!(told(text, &with), [format!("1: x {says}")], "{text}");
    }
}

#[test]
fn all_problems_come_in_one_run_by_line_with_the_fix() {
    let text = "wrod = 1\nlist = [1, \"\"]\n\n[sub]\nspan = 5\nflag = \"yes\"\n[[more]]\n[[more]]\nname = true\n";
    let found = told(text, |root| {
        root.text("word", "write a word");
        let sub = root.section("sub");
        sub.flag("flag");
        sub.duration("span", SECOND..=SECOND * 60, "5s");
        sub.finish();
        for table in root.sections("more") {
            table.required("name", "write name = \"a\"");
            table.finish();
        }
        root.texts("list", "write list = [\"a\"]");
    });
    assert_eq!(
        found,
        [
            "1: wrod is an unknown key; did you mean word?",
            "2: list is an integer; write list = [\"a\"]",
            "2: list holds an empty text; write list = [\"a\"]",
            "5: sub.span has no unit: 5; write \"5s\" if seconds are meant",
            "6: sub.flag is a string; write flag = true or flag = false",
            "7: more[0].name is required; write name = \"a\"",
            "9: more[1].name is a boolean; write name = \"a\"",
        ]
    );
}

#[test]
fn unknown_keys_are_refused_unless_too_little_is_known() {
    let found = told("[a]\nzzzzz = 1\n", |root| {
        let a = root.section("a");
        a.text("one", "");
        a.flag("two");
        a.finish();
    });
    assert_eq!(
        found,
        ["2: a.zzzzz is an unknown key; known keys: one, two"]
    );
    let read = read("[a]\nzzzzz = 1\n", |root| {
        let a = root.section("a");
        a.accept_all();
        a.finish();
    });
    assert_eq!(read, Ok(()));
}

#[test]
fn broken_toml_is_told_with_its_line() {
    let found = told("a = 1\nb = \n", |_| ());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("2: ") && found[0].ends_with("; write TOML: key = \"value\""),
        "{found:?}"
    );
    assert_eq!(
        told("a = 1\nb = 2\na = 3\n", |_| ()),
        ["3: a stands twice in its table; keep one of the two"]
    );
}

#[test]
fn texts_words_and_paths() {
    each(
        |root| root.text("x", "write x = \"a\""),
        &[
            ("x = 5", "is an integer; write x = \"a\""),
            ("x = \" \"", "is empty; write x = \"a\""),
        ],
    );
    each(
        |root| root.required("x", "write x = \"a\""),
        &[
            ("", "is required; write x = \"a\""),
            // What is there in another form is not missing as well.
            ("x = []", "is an array; write x = \"a\""),
        ],
    );
    each(
        |root| root.absolute("x"),
        &[("x = \"a/b\"", "is a relative path; write an absolute path")],
    );
    each(
        |root| root.choice("x", &[("on", true), ("off", false)]),
        &[
            (
                "x = \"maybe\"",
                "\"maybe\" is none of the choices; write \"on\" or \"off\"",
            ),
            ("x = true", "is a boolean; write \"on\" or \"off\""),
        ],
    );
    let text = "a = \"one\"\nb = \"\"\nc = \"/p\"\nd = [\"v\", \"w\"]\ne = \"off\"\n";
    let found = read(text, |root| {
        let a = root.text("a", "").expect("a");
        assert_eq!((a.value.as_str(), a.offset), ("one", 4));
        assert_eq!(root.loose_text("b", ""), Some(String::new()));
        assert_eq!(root.absolute("c"), Some(PathBuf::from("/p")));
        assert_eq!(
            root.texts("d", "").map(|all| all[1].offset),
            text.find("\"w\"")
        );
        assert_eq!(
            root.choice("e", &[("on", 1), ("off", 2)])
                .map(|at| at.value),
            Some(2)
        );
        assert_eq!(root.text("f", "").map(|at| at.value), None);
    });
    assert_eq!(found, Ok(()));
}

#[test]
fn numbers_and_durations_stay_within_their_range() {
    let number = "write a whole number from 1 to 9";
    each(
        |root| root.count("x", 1..=9),
        &[
            ("x = 0", &format!("is out of range; {number}")),
            ("x = -1", &format!("is out of range; {number}")),
            ("x = 1.5", &format!("is a float; {number}")),
            (
                "x = 99999999999999999999",
                &format!("is out of range; {number}"),
            ),
        ],
    );
    each(
        |root| root.duration("x", SECOND..=SECOND * 60, "5s"),
        &[
            (
                "x = \"2m\"",
                "\"2m\" is out of range; stay between 1s and 60s",
            ),
            (
                "x = \"5\"",
                "\"5\" has no unit: write \"5s\" for seconds (units: ms, s, m, h, d); write a duration, as in x = \"5s\"",
            ),
            ("x = 5.0", "is a float; write a duration, as in x = \"5s\""),
        ],
    );
    let found = read("a = 0x1_0\nb = 4_000_000_000\nc = \"90s\"\n", |root| {
        (
            root.count("a", 0..=100).map(|at| at.value),
            root.number("b", 0..=u64::MAX).map(|at| at.value),
            root.duration("c", SECOND..=SECOND * 100, "5s"),
        )
    });
    assert_eq!(
        found,
        Ok((Some(16), Some(4_000_000_000), Some(SECOND * 90)))
    );
}

#[test]
fn callers_read_what_only_they_know() {
    each(
        |root| root.parsed("x", "64GiB", size),
        &[(
            "x = \"64G\"",
            "\"64G\" has an unknown unit (units: B, KiB, MiB, GiB, TiB, KB, MB, GB, TB); write x = \"64GiB\"",
        )],
    );
    each(
        |root| root.valued("x", "write a text", any_text),
        &[("x = 5", "is an integer; write a text")],
    );
    assert_eq!(
        told("[x]\na = 1\nb = \"c\"\n", |root| root.map(
            "x",
            "write texts",
            any_text
        )),
        ["2: x.a is an integer; write texts"]
    );
    let found = read("x = { a = \"1\" }\n", |root| {
        root.map("x", "write texts", any_text)
    });
    assert_eq!(found, Ok([("a".to_owned(), "1".to_owned())].into()));
}

#[test]
fn tables_of_the_wrong_form_are_told_how_to_be_written() {
    each(
        |root| root.section("x").finish(),
        &[("x = 5", "is an integer; write a table: [x]")],
    );
    each(
        |root| root.sections("x").len(),
        &[
            ("x = 5", "is an integer; write tables: [[x]]"),
            ("x = [5]", "is an integer; write tables: [[x]]"),
        ],
    );
    each(
        |root| root.named_sections("x").len(),
        &[("x = 5", "is an integer; write tables: [x.NAME]")],
    );
    let found = told("[x.a]\n[x]\nb = 5\n", |root| {
        for (name, table) in root.named_sections("x") {
            assert_eq!((name.as_str(), table.path()), ("a", "x.a"));
        }
    });
    assert_eq!(found, ["3: x.b is an integer; write tables: [x.NAME]"]);
}

#[test]
fn what_was_reported_of_a_table_is_known() {
    told("[a]\nb = 5\n", |root| {
        let a = root.section("a");
        assert!(!root.blames("a"));
        a.text("b", "");
        assert!(root.blames("a") && a.blames(&a.key("b")) && !a.blames("a.c"));
        a.finish();
    });
}

#[test]
fn a_key_is_found_again_in_the_text() {
    let text = "one = 1\n\n[two]\nthree = 3\n";
    for (path, line) in [
        (&["one"][..], 1),
        (&["two", "three"], 4),
        (&["two", "four"], 3),
        (&["five", "six"], 1),
    ] {
        assert_eq!(line_of(text, path), line, "{path:?}");
    }
    assert_eq!(line_of("= broken", &["a"]), 1);
}

#[test]
fn a_file_is_named_with_what_is_wrong_with_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.toml");
    let take = |text: &str| read(text, |root| root.flag("on"));
    let none = load(&path, take).expect_err("is not there");
    assert_eq!(none.to_string(), format!("cannot read {}", path.display()));
    assert!(matches!(none, FileError::Read { .. }));
    std::fs::write(&path, "\non = 1\noff = 2\n").expect("written");
    let wrong = load(&path, take).expect_err("is wrong");
    let name = path.display();
    assert_eq!(
        wrong.to_string(),
        format!(
            "{name}:2: on is an integer; write on = true or on = false\n{name}:3: off is an unknown key; did you mean on?"
        )
    );
    std::fs::write(&path, "on = true\n").expect("written");
    assert_eq!(load(&path, take).expect("is right"), Some(true));
}
