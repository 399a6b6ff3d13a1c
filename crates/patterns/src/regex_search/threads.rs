//! The simulation of an automaton that follows all its paths at once. It is slower than the lazy
//! automata by far, but nothing makes it give up, it finds groups, and it can be cancelled.

use std::ops::Range;

use regex_automata::Anchored;
use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::{NonMaxUsize, StateID};
use tessera_context::interrupt::Every;

/// A place in the text where a group starts or ends.
pub(super) type Slot = Option<NonMaxUsize>;

/// A simulation in a text.
pub(super) struct Threads<'a> {
    nfa: &'a NFA,
    text: &'a str,
    /// The slots that are tracked, of all that the automaton has.
    slots: usize,
    /// The slots of the path that is being followed.
    current: Vec<Slot>,
    steps: Vec<Step>,
}

/// What is left to do for the states that can be reached without a byte.
enum Step {
    Visit(StateID),
    Restore(usize, Slot),
}

/// The states of all paths at a place of the text, the preferred one first.
struct States {
    order: Vec<StateID>,
    has: Vec<bool>,
    /// The slots of each state's path.
    slots: Vec<Slot>,
}

impl States {
    fn new(states: usize, slots: usize) -> States {
        States { order: Vec::new(), has: vec![false; states], slots: vec![None; states * slots] }
    }

    fn insert(&mut self, state: StateID) -> bool {
        let is_new = !std::mem::replace(&mut self.has[state.as_usize()], true);
        if is_new {
            self.order.push(state);
        }
        is_new
    }

    fn clear(&mut self) {
        for state in self.order.drain(..) {
            self.has[state.as_usize()] = false;
        }
    }
}

impl<'a> Threads<'a> {
    pub(super) fn new(nfa: &'a NFA, text: &'a str, slots: usize) -> Threads<'a> {
        Threads { nfa, text, slots, current: Vec::new(), steps: Vec::new() }
    }

    /// Searches from the start of `span`, for matches that end within it. `found` becomes the slots
    /// of the match; it is left alone if there is none.
    pub(super) fn run(&mut self, span: Range<usize>, anchored: Anchored, found: &mut [Slot]) {
        let new_states = || States::new(self.nfa.states().len(), self.slots);
        let (mut now, mut next) = (new_states(), new_states());
        let (mut matched, every) = (false, Every::default());
        for at in span.start..=span.end {
            every.pass();
            let may_start = at == span.start || anchored == Anchored::No;
            if may_start && !matched && self.text.is_char_boundary(at) {
                self.current.clear();
                self.current.resize(self.slots, None);
                self.visit(self.nfa.start_anchored(), at, &mut now);
            }
            if now.order.is_empty() && (matched || anchored != Anchored::No) {
                return;
            }
            let byte = self.text.as_bytes()[..span.end].get(at).copied();
            for state in &now.order {
                let slots = &now.slots[state.as_usize() * self.slots..][..self.slots];
                let target = match self.nfa.state(*state) {
                    State::ByteRange { trans } => {
                        byte.filter(|byte| trans.matches_byte(*byte)).map(|_| trans.next)
                    }
                    State::Sparse(ranges) => byte.and_then(|byte| ranges.matches_byte(byte)),
                    State::Dense(targets) => byte.and_then(|byte| targets.matches_byte(byte)),
                    // Paths that are less preferred end here.
                    State::Match { .. } => {
                        found.copy_from_slice(slots);
                        matched = true;
                        break;
                    }
                    _ => None,
                };
                if let Some(target) = target {
                    self.current.clear();
                    self.current.extend_from_slice(slots);
                    self.visit(target, at + 1, &mut next);
                }
            }
            std::mem::swap(&mut now, &mut next);
            next.clear();
        }
    }

    /// Adds a state, and those that can be reached from it without a byte.
    fn visit(&mut self, first: StateID, at: usize, states: &mut States) {
        self.steps.push(Step::Visit(first));
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Restore(slot, before) => self.current[slot] = before,
                Step::Visit(state) => self.visit_one(state, at, states),
            }
        }
    }

    /// Follows the preferred path from a state, and puts the others off.
    fn visit_one(&mut self, mut state: StateID, at: usize, states: &mut States) {
        while states.insert(state) {
            state = match self.nfa.state(state) {
                State::Look { look, next } => {
                    let matcher = self.nfa.look_matcher();
                    if !matcher.matches(*look, self.text.as_bytes(), at) {
                        return;
                    }
                    *next
                }
                State::Union { alternates } => {
                    let Some((first, rest)) = alternates.split_first() else { return };
                    self.steps.extend(rest.iter().rev().map(|other| Step::Visit(*other)));
                    *first
                }
                State::BinaryUnion { alt1, alt2 } => {
                    self.steps.push(Step::Visit(*alt2));
                    *alt1
                }
                State::Capture { next, slot, .. } => {
                    if let Some(place) = self.current.get_mut(slot.as_usize()) {
                        self.steps.push(Step::Restore(slot.as_usize(), *place));
                        *place = NonMaxUsize::new(at);
                    }
                    *next
                }
                _ => {
                    let own = &mut states.slots[state.as_usize() * self.slots..][..self.slots];
                    own.copy_from_slice(&self.current);
                    return;
                }
            };
        }
    }
}
