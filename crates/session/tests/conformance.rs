//! The conformance suites on the platform and the devices that every session has.

use std::sync::Arc;

use tessera_context::Place;
use tessera_engine::{Device, Extension, Platform, Setup, conformance::DeviceReport};
use tessera_functions::Library;
use tessera_local::Local;
use tessera_operator::Registry;
use tessera_plan::{Builder, OperatorCatalog, Params, Plan, Rules};
use tessera_session::{Config, Standard, conformance};
use tessera_types::Result;

/// Runs the suite on a device that an extension brings.
pub(crate) fn device(name: &str, extension: &dyn Extension) -> (Device, DeviceReport) {
    let mut setup = Setup::new(Registry::new(Arc::new(Library::default())));
    Standard.install(&mut setup).unwrap();
    if extension.name() != Standard.name() {
        extension.install(&mut setup).unwrap();
    }
    let devices = setup.devices().iter().find(|device| device.name == name);
    let device = devices.unwrap_or_else(|| panic!("no device {name}")).clone();
    let registry = setup.into_registry(&Local);
    let report = tessera_engine::conformance::device(&device, &registry);
    (device, report)
}

#[test]
fn platform_local() {
    let folder = tempfile::tempdir().unwrap();
    conformance::platform(folder.path(), &mut |config| config);
}

/// Platform `local` with a pass that drops all rows of a result but three.
#[derive(Debug)]
struct Losing;

impl Extension for Losing {
    fn name(&self) -> &'static str {
        "losing"
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.platform(Arc::new(Losing))
    }
}

impl Platform for Losing {
    fn name(&self) -> &'static str {
        "losing"
    }

    fn register(&self, registry: &mut Registry) {
        Local.register(registry);
    }

    fn pass(&self, plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
        let mut cut = Builder::new(plan.parameters.clone());
        let all = cut.append(plan.clone());
        let few = cut.add("limit", &[all], Params::new().with("limit", 3));
        Local.pass(&cut.finish(few), catalog, rules)
    }
}

#[test]
#[should_panic(expected = "SELECT * FROM many WHERE v % 997 = 3")]
fn a_platform_that_loses_rows_does_not_conform() {
    let folder = tempfile::tempdir().unwrap();
    conformance::platform(folder.path(), &mut |mut config| {
        config.extensions.push(Arc::new(Losing));
        Config { platform: "losing".to_string(), ..config }
    });
}

#[test]
fn device_cpu() {
    let (device, report) = device("cpu", &Standard);
    assert_eq!((device.place, report.compiles), (Place::Host, cfg!(feature = "llvm")));
}

#[cfg(feature = "llvm")]
#[test]
fn device_virtual_gpu() {
    // The environment may name NVIDIA's, `gpu`.
    let name = std::env::var("TESSERA_TEST_DEVICE").unwrap_or_else(|_| "virtual-gpu".to_string());
    let (device, report) = device(&name, &Standard);
    assert_eq!(device.place, Place::Device);
    assert!(report.compiles && report.peak_bytes > 0, "{report:?}");
}
