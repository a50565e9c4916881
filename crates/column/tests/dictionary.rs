//! Dictionaries against a plain list of strings.

mod common;

use common::*;
use eris_column::Dictionary;
use eris_types::Code;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn versions_are_prefixes_of_later_ones(seed in any::<u64>(), growth in prop::collection::vec(0usize..1500, 1..12)) {
        let random = &mut Random(seed);
        let mut model: Vec<String> = Vec::new();
        let mut versions = vec![Dictionary::new()];
        for count in growth {
            let new: Vec<String> = (0..count).map(|_| string(random)).collect();
            let array = string_array(&new.iter().cloned().map(Some).collect::<Vec<_>>());
            let latest = versions.last().unwrap();
            let missing = unknown(latest, &array);
            let next = latest.extend(new.iter().map(String::as_str));
            for string in new {
                if !model.contains(&string) {
                    model.push(string);
                }
            }
            prop_assert_eq!(&missing[..], &model[latest.len()..], "in order of appearance");
            // Begun with an old version, and ended with the newest, with or without one in between that has half of the
            // rest.
            let half = latest.extend(missing.iter().step_by(2).map(String::as_str));
            let newest = half.extend(missing.iter().map(String::as_str));
            let codes = newest.look_up([&array]).expect("all are known");
            for (old, between) in [(&versions[0], latest), (latest, &half)] {
                let found = old.look_up([&array]).or_else(|unknown| unknown.look_up(between));
                if let Err(unknown) = &found {
                    prop_assert_eq!(unknown.strings().to_vec(), self::unknown(between, &array));
                }
                let found = found.or_else(|unknown| unknown.look_up(&newest));
                prop_assert_eq!(&found.expect("all are known"), &codes);
            }
            versions.push(next);
        }
        for version in &versions {
            let known = &model[..version.len()];
            prop_assert!(version.values().iter().eq(known.iter().map(|text| Some(text.as_str()))));
            for (code, string) in model.iter().enumerate() {
                let code = Code(code as u32);
                let is_known = code.index() < version.len();
                prop_assert_eq!(version.code(string), is_known.then_some(code));
                prop_assert_eq!(version.get(code), is_known.then_some(string.as_str()));
            }
            let mut sorted = known.to_vec();
            sorted.sort();
            let ranks = version.rank();
            for (rank, string) in sorted.iter().enumerate() {
                let code = ranks.code(rank as u32);
                prop_assert_eq!(version.get(code), Some(string.as_str()));
                prop_assert_eq!(ranks.rank(code), rank as u32);
            }
        }
    }
}
