//! In which order the candidates of each block are tried.
//!
//! A Williams design (E. J. Williams, Australian Journal of Scientific Research A 2 (1949), 149–168):
//! a Latin square in which every candidate takes every position equally often and follows every other
//! one equally often, so that neither drift over a block nor what the candidate before left behind can
//! favour one of them. With 2 candidates it is the pair AB, BA. An even number of candidates needs one
//! square, an odd number the square and its mirror image.
//!
//! The plan depends on nothing but its arguments. The generator is ChaCha with 8 rounds, whose output
//! is specified, and the sampling from it is written out here, so that a seed recorded today gives the
//! same plan whatever later versions of the rand crates do.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// The order of `candidates` (by index) in each of `blocks` blocks, drawn from `seed`.
///
/// Every block is a permutation of 0..candidates. Over any number of first blocks, the numbers of times
/// that two candidates took the same position differ by at most 1; over a whole number of squares
/// (`candidates` blocks) they are equal, and over two squares (one, if `candidates` is even) each
/// candidate follows each other equally often. More blocks with the same seed continue the same plan.
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

/// 0, 1, k−1, 2, k−2, …: each two neighbours differ by another amount (modulo k).
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

/// The square for even k, in which row i + k/2 is row i backwards. Such two rows stay together, in
/// random order, so that a steady drift cancels even where the plan ends within the square.
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
    /// The seed's eight bytes, least first, then zeros, are the generator's key.
    fn new(seed: u64) -> Self {
        let mut key = [0_u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number below `bound` (> 0), each equally likely: a draw from the incomplete last stretch of
    /// 2^64 is thrown away.
    fn below(&mut self, bound: u64) -> u64 {
        let incomplete = (u64::MAX % bound + 1) % bound;
        loop {
            let draw = self.0.next_u64();
            if draw <= u64::MAX - incomplete {
                return draw % bound;
            }
        }
    }

    /// Fisher and Yates, from the last place down.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "what is below a slice's length fits usize"
            )]
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}
