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
            let missing = latest.look_up([&array]).err().unwrap_or_default();
            let next = latest.extend(new.iter().map(String::as_str));
            for string in new {
                if !model.contains(&string) {
                    model.push(string);
                }
            }
            prop_assert_eq!(&missing[..], &model[latest.len()..], "in order of appearance");
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
