//! Target processors, and code generation from IR to an object file in memory.

use std::sync::LazyLock;

use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine,
    TargetMachineOptions, TargetTriple,
};
use tessera_types::{Error, Result};

use crate::lower::Provider;

/// The optimization passes: the subset of O2 that these loops need, in a quarter of its time. Code
/// generation takes longer than all of them.
const PASSES: &str = "always-inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,\
                      loop-mssa(loop-rotate,licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg)";

/// Further passes for loops that can be vectorized.
const LOOP_PASSES: &str = "function(loop-vectorize,instcombine<no-verify-fixpoint>,simplifycfg)";

/// A target processor.
#[derive(Debug, Clone)]
pub(crate) struct Processor {
    pub(crate) provider: Provider,
    triple: String,
    cpu: String,
    features: String,
}

/// The environment variable that selects an older processor than the one at hand.
const PROCESSOR_VARIABLE: &str = "TESSERA_CPU";
/// Its values, and the newest feature that each level requires.
const LEVELS: [(&str, &str); 3] =
    [("x86-64-v2", "+sse4.2"), ("x86-64-v3", "+avx2"), ("x86-64-v4", "+avx512vl")];

/// The processor at hand.
static AT_HAND: LazyLock<Result<Processor>> = LazyLock::new(|| {
    Target::initialize_native(&InitializationConfig::default())
        .map_err(|error| llvm_error("find the target", error))?;
    let processor = Processor {
        provider: Provider::Cpu,
        triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
        cpu: TargetMachine::get_host_cpu_name().to_string(),
        features: TargetMachine::get_host_cpu_features().to_string(),
    };
    match std::env::var(PROCESSOR_VARIABLE) {
        Ok(level) => processor.at_level(&level),
        Err(_) => Ok(processor),
    }
});

impl Processor {
    /// Returns this processor limited to the features of a level.
    ///
    /// # Errors
    /// The level is unknown, or this processor lacks it.
    pub(crate) fn at_level(&self, level: &str) -> Result<Processor> {
        let reaches =
            |(_, feature): &&(&str, &str)| self.features.split(',').any(|own| own == *feature);
        let reached: Vec<&str> = LEVELS.iter().filter(reaches).map(|(name, _)| *name).collect();
        if !reached.contains(&level) {
            let choice = match &reached[..] {
                [] => "unset it".to_string(),
                reached => format!("unset it, or choose {}", reached.join(", ")),
            };
            return Err(Error::semantic(format!(
                "{PROCESSOR_VARIABLE}={level} is unknown or unsupported by this processor; {choice}"
            )));
        }
        let (cpu, features) = (level.to_string(), String::new());
        Ok(Processor { provider: self.provider, triple: self.triple.clone(), cpu, features })
    }

    /// Returns this processor emulating a GPU.
    pub(crate) fn as_grid(&self) -> Processor {
        Processor { provider: Provider::VirtualGpu, ..self.clone() }
    }

    /// Returns an NVIDIA GPU of a compute capability, which this machine need not have.
    pub(crate) fn nvidia(capability: &str) -> Processor {
        Target::initialize_nvptx(&InitializationConfig::default());
        let (triple, features) = ("nvptx64-nvidia-cuda".to_string(), "+ptx80".to_string());
        Processor { provider: Provider::Nvptx, triple, cpu: capability.to_string(), features }
    }

    /// Returns a 64-bit ARM processor, which this machine need not have.
    #[cfg(test)]
    pub(crate) fn arm() -> Processor {
        Target::initialize_aarch64(&InitializationConfig::default());
        let triple = "aarch64-unknown-linux-gnu".to_string();
        Processor {
            provider: Provider::Cpu,
            triple,
            cpu: "generic".to_string(),
            features: String::new(),
        }
    }

    /// Returns the processor at hand with all its features, or with those of the level that the
    /// environment selects.
    ///
    /// # Errors
    /// LLVM does not know the processor, or the environment selects a level that it lacks.
    pub(crate) fn at_hand() -> Result<&'static Processor> {
        AT_HAND.as_ref().map_err(Error::clone)
    }

    /// Returns whether the processor has an instruction that compresses selected lanes of a vector.
    pub(crate) fn compresses(&self) -> bool {
        let has = self.features.split(',').any(|feature| feature == "+avx512f");
        self.triple.starts_with("x86_64") && (has || self.cpu == LEVELS[2].0)
    }

    /// Describes everything that code depends on besides the piece itself.
    pub(crate) fn describe(&self) -> String {
        format!("{} {} {} {PASSES} {LOOP_PASSES}", self.triple, self.cpu, self.features)
    }
}

/// A code generator for a processor.
pub(crate) struct Host<'a> {
    machine: TargetMachine,
    pub(crate) processor: &'a Processor,
}

fn llvm_error(doing: &str, error: impl std::fmt::Display) -> Error {
    Error::internal(format!("the compiler could not {doing}: {error}; run with --tier vectorized"))
}

impl Host<'_> {
    /// Creates a code generator.
    pub(crate) fn new(processor: &Processor) -> Result<Host<'_>> {
        let triple = &TargetTriple::create(&processor.triple);
        let target =
            Target::from_triple(triple).map_err(|error| llvm_error("find the target", error))?;
        let options = TargetMachineOptions::new()
            .set_cpu(&processor.cpu)
            .set_features(&processor.features)
            .set_level(OptimizationLevel::Default)
            .set_reloc_mode(RelocMode::PIC)
            .set_code_model(match processor.provider {
                Provider::Nvptx => CodeModel::Default,
                Provider::Cpu | Provider::VirtualGpu => CodeModel::JITDefault,
            });
        let machine = target.create_target_machine_from_options(triple, options);
        let machine = machine.ok_or_else(|| {
            llvm_error("make code for this machine", triple.as_str().to_string_lossy())
        })?;
        Ok(Host { machine, processor })
    }

    /// Returns an empty module for the processor.
    pub(crate) fn module<'ctx>(&self, context: &'ctx Context) -> Module<'ctx> {
        let module = context.create_module("tessera");
        module.set_triple(&TargetTriple::create(&self.processor.triple));
        module.set_data_layout(&self.machine.get_target_data().get_data_layout());
        module
    }

    /// Optimizes a module and returns its object file or assembly text. `straight` enables loop
    /// vectorization.
    pub(crate) fn emit(
        &self,
        (context, module): (&Context, &Module<'_>),
        straight: bool,
        form: FileType,
    ) -> Result<Vec<u8>> {
        for (name, value) in
            [("target-cpu", &self.processor.cpu), ("target-features", &self.processor.features)]
        {
            let attribute = context.create_string_attribute(name, value);
            for function in
                module.get_functions().filter(|function| function.count_basic_blocks() > 0)
            {
                function.add_attribute(AttributeLoc::Function, attribute);
            }
        }
        module.verify().map_err(|error| llvm_error("verify its code", error))?;
        let passes = if straight { format!("{PASSES},{LOOP_PASSES}") } else { PASSES.to_string() };
        let options = PassBuilderOptions::create();
        module
            .run_passes(&passes, &self.machine, options)
            .map_err(|error| llvm_error("optimize", error))?;
        let emitted = self.machine.write_to_memory_buffer(module, form);
        Ok(emitted.map_err(|error| llvm_error("write an object", error))?.as_slice().to_vec())
    }
}
