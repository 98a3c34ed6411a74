//! The order of the candidates in each block.
//!
//! It is a Williams design (E. J. Williams, Australian Journal of Scientific Research A 2 (1949), 149–168): a
//! Latin square in which every candidate takes every position equally often and follows every other candidate
//! equally often. Neither drift over a block nor the effect of the previous candidate can therefore favour a
//! candidate. With 2 candidates it is the pair AB, BA. An even number of candidates needs one square. An odd
//! number needs the square and its mirror image.
//!
//! The plan depends only on its arguments. The generator is ChaCha with 8 rounds, and its output is
//! specified. This module contains the sampling from that output. A recorded seed therefore gives the same
//! plan with all later versions of the rand crates.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// The order of `candidates` (by index) in each of `blocks` blocks, drawn from `seed`.
///
/// Every block is a permutation of 0..candidates. After any number of blocks, the numbers of times that two
/// candidates took the same position differ by at most 1. After a whole number of squares (`candidates`
/// blocks) they are equal. After two squares (one, if `candidates` is even) each candidate has followed each
/// other one equally often. More blocks with the same seed continue the same plan.
#[must_use]
pub fn blocks(candidates: usize, blocks: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = Sampler::new(seed);
    let mut names: Vec<usize> = (0..candidates).collect();
    random.shuffle(&mut names);

    let mut plan: Vec<Vec<usize>> = Vec::with_capacity(blocks);
    while plan.len() < blocks {
        let mut rows = if candidates.is_multiple_of(2) {
            even_square(candidates, &mut random)
        } else {
            odd_squares(candidates, &mut random)
        };
        if rows.is_empty() {
            rows.push(Vec::new());
        }
        plan.extend(
            rows.iter()
                .map(|row| row.iter().map(|&place| names[place]).collect()),
        );
    }
    plan.truncate(blocks);
    plan
}

/// 0, 1, k−1, 2, k−2, …: every two adjacent entries have a different difference (modulo k).
fn first_row(k: usize) -> Vec<usize> {
    (0..k)
        .map(|place| {
            if place % 2 == 1 {
                place.div_ceil(2)
            } else {
                (k - place / 2) % k
            }
        })
        .collect()
}

fn row(k: usize, shift: usize) -> Vec<usize> {
    first_row(k)
        .into_iter()
        .map(|candidate| (candidate + shift) % k)
        .collect()
}

/// The square for even k, in which row i + k/2 is the reverse of row i. Two such rows stay together, in
/// random order. A steady drift therefore cancels even if the plan ends within the square.
fn even_square(k: usize, random: &mut Sampler) -> Vec<Vec<usize>> {
    let mut shifts: Vec<usize> = (0..k / 2).collect();
    random.shuffle(&mut shifts);
    let mut rows = Vec::with_capacity(k);
    for shift in shifts {
        let mut pair = [row(k, shift), row(k, shift + k / 2)];
        random.shuffle(&mut pair);
        rows.extend(pair);
    }
    rows
}

/// The two squares for odd k, in random order, each with its rows in random order.
fn odd_squares(k: usize, random: &mut Sampler) -> Vec<Vec<usize>> {
    let mut squares: [Vec<Vec<usize>>; 2] = [
        (0..k).map(|shift| row(k, shift)).collect(),
        (0..k)
            .map(|shift| row(k, shift).into_iter().rev().collect())
            .collect(),
    ];
    random.shuffle(&mut squares);
    for square in &mut squares {
        random.shuffle(square);
    }
    squares.concat()
}

struct Sampler(ChaCha8Rng);

impl Sampler {
    /// The generator's key: the seed's eight bytes in little-endian order, then zeros.
    fn new(seed: u64) -> Self {
        let mut key = [0_u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A uniformly distributed number below `bound` (> 0). Draws from the incomplete last part of 2^64 are
    /// discarded.
    fn below(&mut self, bound: u64) -> u64 {
        let incomplete = (u64::MAX % bound + 1) % bound;
        loop {
            let draw = self.0.next_u64();
            if draw <= u64::MAX - incomplete {
                return draw % bound;
            }
        }
    }

    /// Fisher–Yates shuffle, from the last element down.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "an index below a slice's length fits usize"
            )]
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}
