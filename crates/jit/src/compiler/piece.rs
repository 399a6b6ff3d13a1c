//! Units of compilation, and their translation to IR and objects.

use std::sync::Arc;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::FileType;
use tessera_codegen::{
    ComputeCode, FunctionCode, GroupCode, HashCode, InputPlace, LookupCode, MachineType,
    SelectCode, UpdateCode, WriteCode,
};
use tessera_types::{Error, Result};

use crate::constants::RuntimeConstants;
use crate::function::link;
use crate::linker::LoadedCode;
use crate::lower::{
    COMPUTE, FUNCTION, GROUP, HASH, LOOKUP, SELECT, UPDATE, WRITE, lower_compute, lower_function,
    lower_group, lower_hash, lower_lookup, lower_select, lower_update, lower_write,
};
use crate::target::Host;

/// The weight of a look-up: its savings in multiples of `SAVED_NANOSECONDS`.
const LOOKUP_WEIGHT: u64 = 4;
/// The weight of a predicate on texts.
const TEXT_WEIGHT: u64 = 3;
/// The number of written fields that weigh one.
const WRITTEN_FIELDS: u64 = 4;

/// A unit of compilation, without the runtime constants but with their types.
#[derive(Debug)]
pub(crate) enum Piece {
    Update(UpdateCode, Vec<MachineType>),
    Select(SelectCode, Vec<MachineType>),
    Compute(ComputeCode, Vec<MachineType>),
    Lookup(LookupCode),
    Hash(HashCode),
    Group(GroupCode),
    Write(WriteCode),
    Function(Arc<FunctionCode>),
}

impl Piece {
    /// Splits code into a piece and its runtime constants.
    pub(crate) fn of_update(mut code: UpdateCode) -> (Piece, RuntimeConstants) {
        let constants = RuntimeConstants::from_update(&mut code);
        (Piece::Update(code, constants.machines.clone()), constants)
    }

    /// Like [`Piece::of_update`].
    pub(crate) fn of_select(mut code: SelectCode) -> (Piece, RuntimeConstants) {
        let constants = RuntimeConstants::from_select(&mut code);
        (Piece::Select(code, constants.machines.clone()), constants)
    }

    /// Like [`Piece::of_update`].
    pub(crate) fn of_compute(mut code: ComputeCode) -> (Piece, RuntimeConstants) {
        let constants = RuntimeConstants::from_compute(&mut code);
        (Piece::Compute(code, constants.machines.clone()), constants)
    }

    /// Returns the savings for each tuple, in multiples of `SAVED_NANOSECONDS`.
    pub(super) fn weight(&self) -> u64 {
        match self {
            Piece::Update(code, _) => {
                code.stages.iter().map(|stage| stage.states.len() as u64).sum()
            }
            Piece::Lookup(_) | Piece::Group(_) => LOOKUP_WEIGHT,
            Piece::Write(code) => 1 + code.fields.len() as u64 / WRITTEN_FIELDS,
            Piece::Select(code, _)
                if code.inputs.iter().any(|input| input.place == InputPlace::Views) =>
            {
                TEXT_WEIGHT
            }
            Piece::Hash(_) | Piece::Compute(..) | Piece::Select(..) | Piece::Function(_) => 1,
        }
    }

    /// Returns the name of its function.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Piece::Update(..) => UPDATE,
            Piece::Select(..) => SELECT,
            Piece::Compute(..) => COMPUTE,
            Piece::Lookup(_) => LOOKUP,
            Piece::Hash(_) => HASH,
            Piece::Group(_) => GROUP,
            Piece::Write(_) => WRITE,
            Piece::Function(_) => FUNCTION,
        }
    }

    /// Returns whether its loops have no branches for single tuples.
    fn is_straight(&self) -> bool {
        match self {
            Piece::Update(code, _) => !code.grouped,
            Piece::Select(..) | Piece::Compute(..) => true,
            Piece::Lookup(_)
            | Piece::Hash(_)
            | Piece::Group(_)
            | Piece::Write(_)
            | Piece::Function(_) => false,
        }
    }

    /// Returns the distinct user-defined functions that it calls.
    fn functions(&self) -> Vec<&Arc<FunctionCode>> {
        let mut found: Vec<&Arc<FunctionCode>> = Vec::new();
        let add = |function| {
            if !found.contains(&function) {
                found.push(function);
            }
        };
        match self {
            Piece::Update(code, _) => code.each_function(add),
            Piece::Select(code, _) => code.predicate.each_function(add),
            Piece::Compute(code, _) => code.value.each_function(add),
            Piece::Lookup(_) | Piece::Hash(_) | Piece::Group(_) | Piece::Write(_) => {}
            Piece::Function(code) => found.push(code),
        }
        found
    }

    /// Links its object.
    pub(super) fn load_object(&self, object: &[u8]) -> Result<LoadedCode> {
        LoadedCode::new(object, self.name())
    }
}

/// Returns the object file of a piece, or its assembly text.
pub(crate) fn emit_piece(host: &Host<'_>, piece: &Piece, form: FileType) -> Result<Vec<u8>> {
    let context = Context::create();
    let module = lower_piece(host, &context, piece)?;
    let straight = host.processor.provider.is_single_threaded() && piece.is_straight();
    host.emit((&context, &module), straight, form)
}

/// Returns the unoptimized IR of a piece.
pub(super) fn lower_piece<'ctx>(
    host: &Host<'_>,
    context: &'ctx Context,
    piece: &Piece,
) -> Result<Module<'ctx>> {
    let module = host.module(context);
    let (of, provider) = ((context, &module), host.processor.provider);
    piece.functions().into_iter().try_for_each(|function| link(of, provider, function))?;
    let lowered = match piece {
        Piece::Update(code, constants) => lower_update(of, provider, (code, constants)),
        Piece::Select(code, constants) => {
            lower_select(of, (provider, host.processor.compresses()), (code, constants))
        }
        Piece::Compute(code, constants) => lower_compute(of, provider, (code, constants)),
        Piece::Lookup(code) => lower_lookup(of, provider, code),
        Piece::Group(code) => lower_group(of, provider, code),
        Piece::Hash(code) => lower_hash(of, provider, code),
        Piece::Write(code) => lower_write(of, provider, code),
        Piece::Function(code) => lower_function(of, provider, code),
    };
    lowered.map_err(|error| {
        Error::internal(format!("the compiler generated invalid code: {error}"))
    })?;
    Ok(module)
}
