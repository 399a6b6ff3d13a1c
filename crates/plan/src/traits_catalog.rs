//! The descriptors of HetExchange's trait converters: `pack`, `unpack`, `router`, `mem_move`,
//! `device_cross`.
//!
//! Each converts exactly one trait (HetExchange, Table 4.1). This module holds only the
//! descriptors, so that every build can read, verify and explain plans that use them; the crates
//! that manage devices implement them.

use std::sync::Arc;

use tessera_types::{Error, Result, did_you_mean, quote_name};

use crate::edge::{Device, Edge, Granularity, Locality, Order, Parallelism};
use crate::graph::Node;
use crate::operator_catalog::{Descriptor, Inputs, OperatorCatalog, Role};

/// Adds the five descriptors.
pub fn register(catalog: &mut OperatorCatalog) {
    catalog.register(Arc::new(Pack));
    catalog.register(Arc::new(Unpack));
    catalog.register(Arc::new(Router));
    catalog.register(Arc::new(MemMove));
    catalog.register(Arc::new(DeviceCross));
}

/// `pack(T)`: turns chunks into packets (handles to chunks). With `keys`, the keys of all tuples in
/// a packet have the same hash, by which a router can send it.
#[derive(Debug, Clone, Copy)]
pub struct Pack;

/// `unpack(T)`: turns packets into chunks.
#[derive(Debug, Clone, Copy)]
pub struct Unpack;

/// `router(T)`: distributes packets to `fan_out` instances; with `keys`, equal keys go to the same
/// instance. A fan-out of 1 gathers the packets of many instances.
#[derive(Debug, Clone, Copy)]
pub struct Router;

/// `mem_move(T)`: moves the chunks of packets to the memory of their consumer; with `broadcast`,
/// copies them to every instance.
#[derive(Debug, Clone, Copy)]
pub struct MemMove;

/// `device_cross(T)`: passes packets to instances on another device, `to = :cpu` or `:gpu`.
#[derive(Debug, Clone, Copy)]
pub struct DeviceCross;

/// The maximum fan-out of a router.
pub const FAN_OUT_MAX: i64 = 65_536;

fn input(inputs: &Inputs<'_>) -> Result<Edge> {
    inputs.edges.first().cloned().ok_or_else(|| Error::semantic("missing input 0"))
}

fn check_keys(node: &Node, edge: &Edge) -> Result<bool> {
    let keys = node.params.names_opt("keys")?;
    match keys.iter().find(|key| edge.tuple.index_of(key).is_none()) {
        Some(key) => {
            let hint = did_you_mean(key, edge.tuple.fields().iter().map(|field| &*field.name));
            let (key, tuple) = (quote_name(key), &edge.tuple);
            Err(Error::semantic(format!("unknown key field {key} in {tuple}{hint}")))
        }
        None => Ok(!keys.is_empty()),
    }
}

impl Descriptor for Pack {
    fn name(&self) -> &'static str {
        "pack"
    }

    fn summary(&self) -> &'static str {
        "Turns chunks into packets: handles that can be routed and moved without touching the tuples."
    }

    fn parameters(&self) -> &'static [&'static str] {
        &["keys"]
    }

    fn arity(&self) -> (usize, usize) {
        (1, 1)
    }

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let mut edge = input(inputs)?;
        if check_keys(node, &edge)? {
            edge.order = Order::None;
        }
        edge.traits.granularity = Granularity::Packet;
        Ok(edge)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl Descriptor for Unpack {
    fn name(&self) -> &'static str {
        "unpack"
    }

    fn summary(&self) -> &'static str {
        "Turns packets into chunks."
    }

    fn parameters(&self) -> &'static [&'static str] {
        &[]
    }

    fn arity(&self) -> (usize, usize) {
        (1, 1)
    }

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let mut edge = input(inputs)?;
        edge.traits.granularity = Granularity::Chunk;
        Ok(edge)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }

    fn takes_packets(&self) -> bool {
        true
    }
}

impl Descriptor for Router {
    fn name(&self) -> &'static str {
        "router"
    }

    fn summary(&self) -> &'static str {
        "Distributes packets to a number of instances, by load or by the hash of keys."
    }

    fn parameters(&self) -> &'static [&'static str] {
        &["fan_out", "keys"]
    }

    fn arity(&self) -> (usize, usize) {
        (1, 1)
    }

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let mut edge = input(inputs)?;
        let fan_out = node.params.integer("fan_out")?;
        if !(1..=FAN_OUT_MAX).contains(&fan_out) {
            return Err(Error::semantic(format!(
                "invalid fan_out {fan_out}; expected 1 to {FAN_OUT_MAX}"
            )));
        }
        let by_keys = check_keys(node, &edge)?;
        (edge.traits.parallelism, edge.traits.locality) = match (fan_out, by_keys) {
            (1, _) => (Parallelism::One, Locality::All),
            (_, true) => (Parallelism::Many, Locality::All),
            (_, false) => (Parallelism::Many, Locality::Worker),
        };
        edge.order = Order::None;
        Ok(edge)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }

    fn takes_packets(&self) -> bool {
        true
    }
}

impl Descriptor for MemMove {
    fn name(&self) -> &'static str {
        "mem_move"
    }

    fn summary(&self) -> &'static str {
        "Moves the chunks of packets into the memory of the instance that processes them."
    }

    fn parameters(&self) -> &'static [&'static str] {
        &["broadcast"]
    }

    fn arity(&self) -> (usize, usize) {
        (1, 1)
    }

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let mut edge = input(inputs)?;
        if node.params.flag("broadcast")? {
            edge.traits.locality = Locality::All;
        }
        Ok(edge)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }

    fn takes_packets(&self) -> bool {
        true
    }
}

impl Descriptor for DeviceCross {
    fn name(&self) -> &'static str {
        "device_cross"
    }

    fn summary(&self) -> &'static str {
        "Passes packets from instances on one device to the same number on another."
    }

    fn parameters(&self) -> &'static [&'static str] {
        &["to"]
    }

    fn arity(&self) -> (usize, usize) {
        (1, 1)
    }

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let mut edge = input(inputs)?;
        let to = match node.params.choice("to", &["cpu", "gpu"])? {
            "cpu" => Device::Cpu,
            _ => Device::Gpu,
        };
        if edge.traits.device == to {
            return Err(Error::semantic(format!(
                "the input is already on device {to}; remove this sub-operator"
            )));
        }
        edge.traits.device = to;
        Ok(edge)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }

    fn takes_packets(&self) -> bool {
        true
    }
}
