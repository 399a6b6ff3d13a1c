//! The machine that code is made for, and the way from IR to an object file in memory.

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

/// What LLVM does to a function before it becomes machine code: of what takes part in its O2 only
/// what these loops need, in a quarter of the time. Making machine code takes longer than all of
/// it.
const PASSES: &str = "always-inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,\
                      loop-mssa(loop-rotate,licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg)";

/// What it does then to loops that can take several tuples at once.
const LOOP_PASSES: &str = "function(loop-vectorize,instcombine<no-verify-fixpoint>,simplifycfg)";

/// What code is made for.
#[derive(Debug, Clone)]
pub(crate) struct Processor {
    pub(crate) provider: Provider,
    triple: String,
    cpu: String,
    features: String,
}

/// Names a processor that less is expected of than of the one at hand.
const PROCESSOR_VARIABLE: &str = "TESSERA_CPU";
/// What it may name, and the last thing that such a processor can do.
const LEVELS: [(&str, &str); 3] =
    [("x86-64-v2", "+sse4.2"), ("x86-64-v3", "+avx2"), ("x86-64-v4", "+avx512vl")];

/// The processor at hand.
static AT_HAND: LazyLock<Result<Processor>> = LazyLock::new(|| {
    Target::initialize_native(&InitializationConfig::default())
        .map_err(|error| failed("find the target", error))?;
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
    /// The same with what all processors of a level can do.
    ///
    /// # Errors
    /// There is no such level, or this processor is below it.
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
                "{PROCESSOR_VARIABLE}={level} is no processor that this one can stand for; {choice}"
            )));
        }
        let (cpu, features) = (level.to_string(), String::new());
        Ok(Processor { provider: self.provider, triple: self.triple.clone(), cpu, features })
    }

    /// The same, standing in for a GPU.
    pub(crate) fn as_grid(&self) -> Processor {
        Processor { provider: Provider::VirtualGpu, ..self.clone() }
    }

    /// An NVIDIA GPU of a compute capability, whatever there is at hand.
    pub(crate) fn nvidia(capability: &str) -> Processor {
        Target::initialize_nvptx(&InitializationConfig::default());
        let (triple, features) = ("nvptx64-nvidia-cuda".to_string(), "+ptx80".to_string());
        Processor { provider: Provider::Nvptx, triple, cpu: capability.to_string(), features }
    }

    /// A 64-bit ARM processor, whatever there is at hand.
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

    /// The processor at hand, with all that it can do; with less, where the environment says so.
    ///
    /// # Errors
    /// LLVM does not know it, or the environment asks for what there is not.
    pub(crate) fn at_hand() -> Result<&'static Processor> {
        AT_HAND.as_ref().map_err(Error::clone)
    }

    /// Whether it brings the chosen ones of several numbers together in one instruction.
    pub(crate) fn compresses(&self) -> bool {
        let has = self.features.split(',').any(|feature| feature == "+avx512f");
        self.triple.starts_with("x86_64") && (has || self.cpu == LEVELS[2].0)
    }

    /// All that code depends on beside what it is made of.
    pub(crate) fn describe(&self) -> String {
        format!("{} {} {} {PASSES} {LOOP_PASSES}", self.triple, self.cpu, self.features)
    }
}

/// Makes code for a processor.
pub(crate) struct Host<'a> {
    machine: TargetMachine,
    pub(crate) processor: &'a Processor,
}

fn failed(doing: &str, error: impl std::fmt::Display) -> Error {
    Error::internal(format!("the compiler could not {doing}: {error}; run with --tier vectorized"))
}

impl Host<'_> {
    /// For a processor.
    pub(crate) fn new(processor: &Processor) -> Result<Host<'_>> {
        let triple = &TargetTriple::create(&processor.triple);
        let target =
            Target::from_triple(triple).map_err(|error| failed("find the target", error))?;
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
            failed("make code for this machine", triple.as_str().to_string_lossy())
        })?;
        Ok(Host { machine, processor })
    }

    /// A module for this machine.
    pub(crate) fn module<'ctx>(&self, context: &'ctx Context) -> Module<'ctx> {
        let module = context.create_module("tessera");
        module.set_triple(&TargetTriple::create(&self.processor.triple));
        module.set_data_layout(&self.machine.get_target_data().get_data_layout());
        module
    }

    /// Optimises a module, whose loops may be `straight`, and gives its object file, or the
    /// assembler's text.
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
        module.verify().map_err(|error| failed("verify its code", error))?;
        let passes = if straight { format!("{PASSES},{LOOP_PASSES}") } else { PASSES.to_string() };
        let options = PassBuilderOptions::create();
        module
            .run_passes(&passes, &self.machine, options)
            .map_err(|error| failed("optimise", error))?;
        let emitted = self.machine.write_to_memory_buffer(module, form);
        Ok(emitted.map_err(|error| failed("write an object", error))?.as_slice().to_vec())
    }
}
