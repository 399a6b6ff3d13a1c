//! What the trait converters of HetExchange mean: `pack`, `unpack`, `router`, `mem_move`,
//! `device_cross`.
//!
//! Each converts exactly one trait (HetExchange, Table 4.1). Only their descriptors are here, so
//! that plans with them can be read, verified and explained anywhere; what runs them belongs to the
//! rooms that know devices.

use std::sync::Arc;

use tessera_types::{Error, Result, quote_name};

use crate::catalogue::{Catalogue, Descriptor, Inputs, Role};
use crate::edge::{Device, Edge, Granularity, Locality, Order, Parallelism};
use crate::graph::Node;

/// Adds the five descriptors.
pub fn register(catalogue: &mut Catalogue) {
    catalogue.register(Arc::new(Pack));
    catalogue.register(Arc::new(Unpack));
    catalogue.register(Arc::new(Router));
    catalogue.register(Arc::new(MemMove));
    catalogue.register(Arc::new(DeviceCross));
}

/// `pack(T)`: chunks become packets, handles to chunks. With `keys`, all tuples of a packet have
/// keys of one hash value, so that a router can send it by that.
#[derive(Debug, Clone, Copy)]
pub struct Pack;

/// `unpack(T)`: packets become chunks.
#[derive(Debug, Clone, Copy)]
pub struct Unpack;

/// `router(T)`: hands packets to `fan_out` instances; with `keys`, equal keys to the same instance.
/// A fan-out of 1 brings the packets of many instances to one.
#[derive(Debug, Clone, Copy)]
pub struct Router;

/// `mem_move(T)`: brings what packets point to where it is processed; with `broadcast`, a copy to
/// every instance.
#[derive(Debug, Clone, Copy)]
pub struct MemMove;

/// `device_cross(T)`: hands packets to instances on another device, `to = :cpu` or `:gpu`.
#[derive(Debug, Clone, Copy)]
pub struct DeviceCross;

/// The most instances a router feeds.
pub const FAN_OUT_MAX: i64 = 65_536;

fn input(inputs: &Inputs<'_>) -> Result<Edge> {
    inputs.edges.first().cloned().ok_or_else(|| Error::semantic("has no input"))
}

fn check_keys(node: &Node, edge: &Edge) -> Result<bool> {
    let keys = node.params.names_opt("keys")?;
    match keys.iter().find(|key| edge.tuple.index_of(key).is_none()) {
        Some(key) => {
            Err(Error::semantic(format!("has no field {} in {}", quote_name(key), edge.tuple)))
        }
        None => Ok(!keys.is_empty()),
    }
}

impl Descriptor for Pack {
    fn name(&self) -> &'static str {
        "pack"
    }

    fn summary(&self) -> &'static str {
        "Puts chunks into packets: handles that can be routed and moved without touching the tuples."
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
        "Takes chunks out of packets."
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
        "Hands packets to a number of instances, by load or by the hash of keys."
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
                "fan_out must be 1 to {FAN_OUT_MAX}, not {fan_out}"
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
        "Moves what packets point to into the memory of the instance that processes it."
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
        "Hands packets from instances on one device to as many on another."
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
            return Err(Error::semantic(format!("its input is on device {to} already; remove it")));
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
