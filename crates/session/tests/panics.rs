//! A panic fails its statement with an internal error, and the session remains usable.

use std::sync::Arc;

use tessera_engine::{Extension, Platform, Setup};
use tessera_local::Local;
use tessera_operator::Registry;
use tessera_plan::{OperatorCatalog, Plan, Rules};
use tessera_session::{Config, Session, StatementResult};
use tessera_types::{Code, Result};

/// The local platform with a pass that panics on one table function.
#[derive(Debug)]
struct Panicking;

impl Platform for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn accepts_local_paths(&self) -> bool {
        true
    }

    fn register(&self, registry: &mut Registry) {
        Local.register(registry);
    }

    fn pass(&self, plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
        assert!(!tessera_plan::text::print(plan).contains("on purpose"), "a bug in a pass");
        Local.pass(plan, catalog, rules)
    }
}

impl Extension for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.platform(Arc::new(Panicking))
    }
}

#[test]
fn a_panic_while_planning_ends_its_statement_only() {
    let mut config = Config { threads: 1, platform: "panicking".to_string(), ..Config::default() };
    config.extensions.push(Arc::new(Panicking));
    let mut session = Session::new(config).unwrap();
    session.execute("CREATE TABLE t AS SELECT 1 AS a").unwrap();
    for sql in [
        "SELECT 'on purpose' AS a",
        "EXPLAIN ANALYZE SELECT 'on purpose' AS a",
        "CREATE TABLE u AS SELECT 'on purpose' AS a",
        "COPY (SELECT 'on purpose' AS a) TO 'never.csv'",
    ] {
        let error = session.execute(&format!("SELECT 1; {sql}")).unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{sql}: {error}");
        assert!(
            error.message().contains("a bug in a pass; this is a bug in Tessera: please report"),
            "{sql}: {error}"
        );
        let results = session.execute("SELECT a FROM t").unwrap();
        assert!(matches!(&results[..], [StatementResult::Rows(rows)] if rows.row_count() == 1));
    }
    let plan = "plan { %0 = values() {columns = <a: string>, rows = [['on purpose']]} return %0 }";
    assert_eq!(session.run_plan(plan).unwrap_err().code(), Code::Internal);
    session.execute("SELECT 1").unwrap();
}
