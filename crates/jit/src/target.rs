//! The machine that code is made for, and the way from IR to an object file in memory.

use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetMachineOptions,
};
use inkwell::values::FunctionValue;
use tessera_types::{Error, Result};

/// What LLVM does to a function before it becomes machine code: of what takes part in its O2 only what these loops need, in a quarter of
/// the time. Making machine code takes longer than all of it.
const PASSES: &str = "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,\
                      loop-mssa(loop-rotate,licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg)";

/// The processor at hand.
pub(crate) struct Host {
    machine: TargetMachine,
    cpu: String,
    features: String,
}

fn failed(doing: &str, error: impl std::fmt::Display) -> Error {
    Error::internal(format!("the compiler could not {doing}: {error}; run with --tier vectorized"))
}

impl Host {
    /// The processor at hand, with all that it can do.
    pub(crate) fn new() -> Result<Host> {
        Target::initialize_native(&InitializationConfig::default())
            .map_err(|error| failed("find the target", error))?;
        let triple = TargetMachine::get_default_triple();
        let target = Target::from_triple(&triple).map_err(|error| failed("find the target", error))?;
        let cpu = TargetMachine::get_host_cpu_name().to_string();
        let features = TargetMachine::get_host_cpu_features().to_string();
        let options = TargetMachineOptions::new()
            .set_cpu(&cpu)
            .set_features(&features)
            .set_level(OptimizationLevel::Default)
            .set_reloc_mode(RelocMode::PIC)
            .set_code_model(CodeModel::JITDefault);
        let machine = target.create_target_machine_from_options(&triple, options);
        let machine =
            machine.ok_or_else(|| failed("make code for this machine", triple.as_str().to_string_lossy()))?;
        Ok(Host { machine, cpu, features })
    }

    /// All that code depends on beside what it is made of.
    pub(crate) fn describe(&self) -> String {
        let triple = self.machine.get_triple();
        format!("{} {} {} {PASSES}", triple.as_str().to_string_lossy(), self.cpu, self.features)
    }

    /// A module for this machine.
    pub(crate) fn module<'ctx>(&self, context: &'ctx Context) -> Module<'ctx> {
        let module = context.create_module("tessera");
        module.set_triple(&self.machine.get_triple());
        module.set_data_layout(&self.machine.get_target_data().get_data_layout());
        module
    }

    /// Optimises a module with a function and gives its object file.
    pub(crate) fn object(
        &self,
        context: &Context,
        module: &Module<'_>,
        function: FunctionValue<'_>,
    ) -> Result<Vec<u8>> {
        for (name, value) in [("target-cpu", &self.cpu), ("target-features", &self.features)] {
            function.add_attribute(AttributeLoc::Function, context.create_string_attribute(name, value));
        }
        module.verify().map_err(|error| failed("verify its code", error))?;
        let options = PassBuilderOptions::create();
        module.run_passes(PASSES, &self.machine, options).map_err(|error| failed("optimise", error))?;
        let object = self.machine.write_to_memory_buffer(module, FileType::Object);
        Ok(object.map_err(|error| failed("write an object", error))?.as_slice().to_vec())
    }
}
