//! Groups: their records, the heap of their strings, and the aggregate functions over them.

use std::any::Any;
use std::sync::Arc;

use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column};

use super::keys::{KeyLayout, Keys};
use crate::aggregate::{Area, Pairs, Program, States};

/// Unordered groups; the code that fills it decides whether keys are distinct.
#[derive(Debug)]
pub struct Store {
    layout: Arc<KeyLayout>,
    program: Arc<Program>,
    /// The records.
    pub area: Area,
    heap: Vec<u8>,
    /// The aggregate functions.
    pub states: States,
}

impl Store {
    /// Creates a store without groups.
    pub fn new(layout: Arc<KeyLayout>, program: Arc<Program>) -> Result<Self> {
        let area = Area::new(program.stride());
        let states = program.make()?;
        Ok(Store { layout, program, area, heap: Vec::new(), states })
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.area.groups()
    }

    /// Adds a group with the keys of a row; with `whole`, also its states (which must be flat).
    #[inline(always)]
    pub fn push<K: Keys>(&mut self, keys: &K, row: usize, whole: bool) -> u32 {
        let record = keys.record(row);
        let words = if whole { record.len() } else { self.layout.words() };
        let group = self.area.push(&record[..words]);
        self.layout.adopt(self.area.record_mut(group as usize), &mut self.heap, keys, row);
        group
    }

    /// Prepares the states to be merged into another store.
    pub fn seal(&mut self) -> Result<()> {
        for state in &mut self.states {
            state.seal(&self.area)?;
        }
        Ok(())
    }

    /// Adds `rows` of another store (sealed, its states flat or not) as new groups.
    pub fn append(&mut self, other: &mut Store, rows: &[u32]) -> Result<()> {
        let flat = self.program.is_flat();
        let first = self.groups() as u32;
        self.area.reserve(self.groups() + rows.len());
        for &row in rows {
            self.push(&*other, row as usize, flat);
        }
        if !flat {
            let into: Vec<u32> = (first..self.groups() as u32).collect();
            self.merge_states(&into, other, rows)?;
        }
        Ok(())
    }

    /// Merges the states of `rows` of another store (sealed) into those of the groups `into`.
    pub fn merge_states(&mut self, into: &[u32], other: &mut Store, rows: &[u32]) -> Result<()> {
        let pairs = Pairs { into, from: &other.area, rows };
        for (state, from) in self.states.iter_mut().zip(&mut other.states) {
            let from: &mut dyn Any = &mut **from;
            state.merge(&mut self.area, &pairs, from)?;
        }
        Ok(())
    }

    /// Removes all groups but keeps the memory.
    pub fn clear(&mut self) -> Result<()> {
        self.area.clear();
        self.heap.clear();
        if !self.program.is_flat() {
            self.states = self.program.make()?;
        }
        Ok(())
    }

    /// Returns keys and results of all groups as one chunk, which may exceed the usual size; the
    /// store must be dropped or cleared afterwards.
    pub fn finish(&mut self) -> Result<Chunk> {
        let rows = self.groups();
        let mut columns = self.layout.unpack(&self.area, std::mem::take(&mut self.heap))?;
        columns.extend(self.program.finish(&mut self.states, &mut self.area)?);
        Ok(Chunk::new(columns.into_iter().map(Column::Plain).collect(), rows))
    }

    /// Encodes all groups as bytes; their states must be flat.
    pub fn encode(&self) -> Vec<u8> {
        let words = self.area.words();
        let mut bytes = Vec::with_capacity(8 + words.len() * 8 + self.heap.len());
        bytes.extend((self.groups() as u64).to_le_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(&self.heap);
        bytes
    }

    /// Decodes groups.
    ///
    /// # Errors
    /// The bytes do not encode groups of this kind.
    pub fn decode(layout: Arc<KeyLayout>, program: Arc<Program>, bytes: &[u8]) -> Result<Store> {
        let wrong = || Error::internal("spilled groups cannot be decoded");
        let (groups, rest) = bytes.split_first_chunk().ok_or_else(wrong)?;
        let record_bytes = (u64::from_le_bytes(*groups) as usize).checked_mul(program.stride() * 8);
        let (records, heap) =
            record_bytes.and_then(|at| rest.split_at_checked(at)).ok_or_else(wrong)?;
        let (words, _) = records.as_chunks();
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let area = Area::of_words(words, program.stride());
        Ok(Store { states: program.make()?, area, layout, program, heap: heap.to_vec() })
    }

    /// Bytes of the records and their strings.
    pub fn record_bytes(&self) -> usize {
        self.area.record_bytes() + self.heap.len()
    }

    /// Bytes held in all.
    pub fn memory(&self) -> usize {
        self.area.memory()
            + self.heap.capacity()
            + self.states.iter().map(|state| state.memory()).sum::<usize>()
    }
}

impl Keys for Store {
    #[inline(always)]
    fn record(&self, row: usize) -> &[u64] {
        self.area.record(row)
    }

    #[inline]
    fn text(&self, view: usize, row: usize) -> &[u8] {
        let (first, second) = self.layout.view(self.area.record(row), view);
        let start = second as usize;
        self.heap.get(start..start + first as u32 as usize).unwrap_or_default()
    }
}
