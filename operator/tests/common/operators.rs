//! Two operators on one cluster. Their passes interleave write by write. Each operator has separate readings,
//! and its observation may be old before it acts.

use std::collections::VecDeque;

use frugality_operator::{api::FrugalityBenchmark, plan::action::Action};

use super::world::World;

/// A pass that is planned but not yet complete.
struct Flight {
    operator: usize,
    slot: usize,
    seen: FrugalityBenchmark,
    seen_at: f64,
    actions: VecDeque<Action>,
    opened: Option<String>,
    requeue_seconds: f64,
    next_action: f64,
}

/// The cluster and its two operators.
pub(crate) struct Two {
    pub(crate) world: World,
    /// Passes that ended early, because the other operator wrote first or the plan was too old.
    pub(crate) overtaken: u32,
    /// Deaths of an operator.
    pub(crate) deaths: u32,
    /// An operator drops a plan that is older than this.
    stale_after_seconds: f64,
    flights: Vec<Flight>,
    random: Random,
}

impl Two {
    /// Two operators that start together. `seed` determines delays and deaths.
    pub(crate) fn new(mut world: World, seed: u64, stale_after_seconds: f64) -> Self {
        for slot in &mut world.slots {
            slot.second.next_pass = slot.next_pass + 0.3;
        }
        Self {
            world,
            overtaken: 0,
            deaths: 0,
            stale_after_seconds,
            flights: Vec::new(),
            random: Random(seed),
        }
    }

    /// Runs until every benchmark has ended, its objects are gone, and no pass is under way.
    #[track_caller]
    pub(crate) fn run_to_end(&mut self) {
        let limit = self.world.now + 8.0 * 3600.0;
        while !(self.world.is_over() && self.flights.is_empty()) {
            self.step();
            assert!(
                self.world.now < limit,
                "never ended: {:#?}",
                self.world.reasons
            );
        }
    }

    fn step(&mut self) {
        let flight = (0..self.flights.len())
            .map(|index| (self.flights[index].next_action, index))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let pass = self.next_pass();
        match (flight, pass) {
            (Some((at, index)), pass) if pass.is_none_or(|(begin, _, _)| at <= begin) => {
                self.world.advance_to(at);
                self.act(index);
            }
            (_, Some((at, operator, slot))) => {
                self.world.advance_to(at);
                if self.random.chance(0.001) {
                    self.die(operator);
                } else {
                    self.look(operator, slot);
                }
            }
            _ => unreachable!("there is a flight or a pass"),
        }
    }

    /// Time, operator and slot of the next pass. Pairs with a pass under way are left out.
    fn next_pass(&self) -> Option<(f64, usize, usize)> {
        let slots = self.world.slots.iter().enumerate();
        slots
            .flat_map(|(index, slot)| {
                let next_pass = |due| slot.next_pass_from(due, self.world.now);
                [
                    (next_pass(slot.next_pass), 0, index),
                    (next_pass(slot.second.next_pass), 1, index),
                ]
            })
            .filter(|(_, operator, slot)| {
                let is_it = |f: &Flight| f.operator == *operator && f.slot == *slot;
                !self.flights.iter().any(is_it)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn look(&mut self, operator: usize, slot: usize) {
        let plan = self.with(operator, |world| {
            let plan = world.plan(slot);
            world.remember_reason(slot, &plan);
            plan
        });
        let seen = self.world.slots[slot].benchmark.clone();
        let requeue_seconds = plan.requeue_seconds;
        let delay = self.delay();
        self.flights.push(Flight {
            operator,
            slot,
            seen_at: self.world.now,
            actions: plan.actions(seen.status.as_ref()).into(),
            seen,
            opened: None,
            requeue_seconds,
            next_action: self.world.now + delay,
        });
    }

    fn act(&mut self, index: usize) {
        let mut flight = self.flights.swap_remove(index);
        let now = self.world.now;
        let Some(action) = flight.actions.pop_front() else {
            self.again(&flight, flight.requeue_seconds);
            return;
        };
        let goes_on = now - flight.seen_at <= self.stale_after_seconds
            && self.with(flight.operator, |world| {
                world.act(flight.slot, &flight.seen, &action, &mut flight.opened)
            });
        if goes_on {
            flight.next_action = now + self.delay();
            self.flights.push(flight);
        } else {
            self.overtaken += 1;
            self.again(&flight, 1.0);
        }
    }

    fn again(&mut self, flight: &Flight, seconds: f64) {
        let slot = flight.slot;
        self.with(flight.operator, |world| {
            world.slots[slot].next_pass = world.now + seconds;
        });
    }

    fn die(&mut self, operator: usize) {
        self.deaths += 1;
        self.flights.retain(|flight| flight.operator != operator);
        self.with(operator, World::kill_operator);
    }

    /// Executes `act` in the world as this operator.
    fn with<T>(&mut self, operator: usize, act: impl FnOnce(&mut World) -> T) -> T {
        let swap = |world: &mut World| {
            if operator == 1 {
                for slot in &mut world.slots {
                    slot.swap_operators();
                }
            }
        };
        swap(&mut self.world);
        let result = act(&mut self.world);
        swap(&mut self.world);
        result
    }

    /// Usually some milliseconds, and sometimes nearly the greatest age of a plan.
    fn delay(&mut self) -> f64 {
        if self.random.chance(0.02) {
            self.random.uniform() * self.stale_after_seconds
        } else {
            0.002 + 0.05 * self.random.uniform()
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number from 0 to below 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of the items, at random.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let share = self.uniform();
        let index = (0..of.len())
            .rev()
            .find(|i| share * of.len() as f64 >= *i as f64);
        &of[index.unwrap()]
    }

    fn chance(&mut self, share: f64) -> bool {
        self.uniform() < share
    }
}
