//! The order of trials: balanced, random from the seed, and always the same.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;

use frugality_measure::order::blocks;
use proptest::prelude::*;

fn spread(counts: impl Iterator<Item = usize>) -> usize {
    let counts: Vec<usize> = counts.collect();
    counts.iter().max().unwrap() - counts.iter().min().unwrap()
}

/// How often each candidate took each position.
fn positions(plan: &[Vec<usize>], k: usize) -> Vec<usize> {
    let mut counts = vec![0; k * k];
    for block in plan {
        for (position, &candidate) in block.iter().enumerate() {
            counts[position * k + candidate] += 1;
        }
    }
    counts
}

/// How often each candidate followed each other candidate within a block.
fn successions(plan: &[Vec<usize>], k: usize) -> BTreeMap<(usize, usize), usize> {
    let mut counts = BTreeMap::new();
    for first in 0..k {
        for second in (0..k).filter(|&second| second != first) {
            counts.insert((first, second), 0);
        }
    }
    for block in plan {
        for pair in block.windows(2) {
            *counts.get_mut(&(pair[0], pair[1])).unwrap() += 1;
        }
    }
    counts
}

proptest! {
    #[test]
    fn every_block_tries_every_candidate_once(k in 0_usize..=16, n in 0_usize..40, seed: u64) {
        let plan = blocks(k, n, seed);
        prop_assert_eq!(plan.len(), n);
        for mut block in plan {
            block.sort_unstable();
            prop_assert_eq!(block, (0..k).collect::<Vec<_>>());
        }
    }

    #[test]
    fn positions_differ_by_at_most_one_for_any_number_of_blocks(
        k in 1_usize..=16, n in 1_usize..70, seed: u64,
    ) {
        let plan = blocks(k, n, seed);
        let counts = positions(&plan, k);
        for position in 0..k {
            prop_assert!(spread(counts[position * k..][..k].iter().copied()) <= 1);
        }
        if n.is_multiple_of(k) {
            prop_assert_eq!(spread(counts.into_iter()), 0);
        }
    }

    #[test]
    fn whole_designs_balance_the_order_of_succession(k in 2_usize..=16, times in 1_usize..4, seed: u64) {
        let design = if k.is_multiple_of(2) { k } else { 2 * k };
        let counts = successions(&blocks(k, design * times, seed), k);
        prop_assert_eq!(spread(counts.into_values()), 0);
    }

    #[test]
    fn with_an_even_number_of_candidates_each_two_blocks_cancel_a_drift(
        half in 1_usize..=8, pairs in 1_usize..10, seed: u64,
    ) {
        for pair in blocks(2 * half, 2 * pairs, seed).chunks(2) {
            prop_assert!(pair[0].iter().eq(pair[1].iter().rev()));
        }
    }

    #[test]
    fn more_blocks_continue_the_same_plan(k in 1_usize..=16, n in 1_usize..40, more in 0_usize..40, seed: u64) {
        let longer = blocks(k, n + more, seed);
        prop_assert_eq!(blocks(k, n, seed), longer[..n].to_vec());
    }
}

#[test]
fn two_candidates_go_first_equally_often() {
    let first = blocks(2, 10, 7)
        .iter()
        .filter(|block| block[0] == 0)
        .count();
    assert_eq!(first, 5);
}

#[test]
fn seeds_reach_every_order_about_equally_often() {
    let mut seen: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for seed in 0..6000 {
        *seen.entry(blocks(3, 1, seed).remove(0)).or_default() += 1;
    }
    assert_eq!(seen.len(), 6);
    // 1000 expected for each, standard deviation 29.
    assert!(
        seen.values().all(|count| (850..1150).contains(count)),
        "{seen:?}"
    );
}

/// Recorded seeds must always give the same plan: a change breaks every ledger.
#[test]
fn plans_of_recorded_seeds_never_change() {
    let flat = |plan: Vec<Vec<usize>>| {
        let words: Vec<String> = plan
            .iter()
            .map(|block| block.iter().map(ToString::to_string).collect())
            .collect();
        words.join(" ")
    };
    assert_eq!(flat(blocks(2, 10, 1)), "10 01 10 01 10 01 10 01 10 01");
    assert_eq!(
        flat(blocks(2, 10, u64::MAX)),
        "10 01 10 01 10 01 10 01 01 10"
    );
    assert_eq!(flat(blocks(3, 7, 42)), "021 102 210 201 120 012 201");
    assert_eq!(flat(blocks(4, 6, 2026)), "2130 0312 1023 3201 3201 1023");
}
