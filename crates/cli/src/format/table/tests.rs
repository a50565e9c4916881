use super::SAMPLE;
use crate::format::test_support::{batch, no_rows, print, print_as};
use crate::format::{Expanded, Format, Layout};
use arrow::array::{Int32Array, StringArray};
use std::sync::Arc;
use unicode_width::UnicodeWidthStr;

#[test]
fn numbers_right_text_left_null_spelled_out() {
    let texts = StringArray::from(vec![Some("日本"), Some("a\tb\u{1b}"), None]);
    let numbers = Int32Array::from(vec![Some(1), None, Some(-300)]);
    let batch = batch(vec![("text", Arc::new(texts)), ("n", Arc::new(numbers))]);
    let expected = "\
┌────────────┬──────┐
│ text       │    n │
├────────────┼──────┤
│ 日本       │    1 │
│ a\\tb\\u{1b} │ NULL │
│ NULL       │ -300 │
└────────────┴──────┘
";
    assert_eq!(print(Format::Table, &[batch]), expected);
}

#[test]
fn a_result_without_rows_keeps_its_head() {
    assert_eq!(
        print(Format::Table, &[no_rows()]),
        "┌───┬────┐\n│ n │ at │\n├───┼────┤\n└───┴────┘\n"
    );
}

#[test]
fn rows_after_the_sample_keep_coming_with_its_widths() {
    let mut values = vec![1; SAMPLE];
    values.extend([1_000_000, 2]);
    let text = print(
        Format::Table,
        &[batch(vec![("n", Arc::new(Int32Array::from(values)))])],
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), SAMPLE + 2 + 4);
    assert_eq!(&lines[lines.len() - 3..], ["│ 1000000 │", "│ 2 │", "└───┘"]);
}

fn layout(width: Option<usize>, rows: Option<usize>, expanded: Expanded) -> Layout {
    Layout {
        width,
        rows,
        expanded,
        ..Layout::default()
    }
}

#[test]
fn a_screen_shortens_texts_and_leaves_out_columns() {
    let columns: Vec<_> = ('a'..='h').map(|name| name.to_string()).collect();
    let value = || Arc::new(StringArray::from(vec!["a text of 23 characters"])) as _;
    let wide = batch(columns.iter().map(|name| (&**name, value())).collect());
    let text = print_as(
        Format::Table,
        &layout(Some(50), None, Expanded::Off),
        std::slice::from_ref(&wide),
    );
    assert!(text.lines().all(|line| line.width() <= 50), "{text}");
    assert!(text.contains("│ a       "), "{text}");
    assert!(text.contains("│ … │"), "{text}");
    assert!(text.contains("a text …"), "{text}");
    let text = print_as(
        Format::Table,
        &layout(Some(50), None, Expanded::Auto),
        &[wide],
    );
    assert!(text.contains("h │ a text of 23 characters\n"), "{text}");
}

#[test]
fn of_many_rows_the_first_and_the_last_are_shown() {
    let numbers = |range: std::ops::Range<i32>| {
        batch(vec![("n", Arc::new(Int32Array::from_iter_values(range)))])
    };
    let limited = layout(None, Some(4), Expanded::Off);
    let batches = [numbers(0..3), numbers(3..50), numbers(50..51)];
    let text = print_as(Format::Table, &limited, &batches);
    let rows: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(
        rows,
        ["│  0 │", "│  1 │", "│  ⋮ │", "│ 49 │", "│ 50 │", "└────┘"]
    );
    let text = print_as(Format::Table, &limited, &[numbers(0..4)]);
    assert!(!text.contains('⋮'), "{text}");
    assert_eq!(text.lines().count(), 8);
}
