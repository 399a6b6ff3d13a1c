//! Statements that create or drop tables and views. Each clause is either planned or rejected by
//! name.

use sqlparser::ast::{
    Analyze, CreateTable, CreateTableOptions, CreateView, HiveDistributionStyle, HiveFormat, Ident,
    ObjectType, Query, Statement as SqlStatement, ViewColumnDef,
};
use tessera_binder::{Mode, Parameters, PlanContext, PlannedQuery};
use tessera_parser::NamedColumns;
use tessera_types::{Error, Result, SqlState};

use crate::statement::{CreateTableAs, Statement, parts};

/// Plans `CREATE TABLE … AS` with columns that have no types.
pub(crate) fn named_columns(create: &NamedColumns, context: &PlanContext<'_>) -> Result<Statement> {
    let NamedColumns { name, columns, query, temporary, if_not_exists, or_replace } = create;
    let query = &*renamed(query, columns, context)?;
    let (temporary, if_not_exists, or_replace) = (*temporary, *if_not_exists, *or_replace);
    table_as(parts(name)?, context.stored_query(query)?, temporary, if_not_exists, or_replace)
}

/// Renames the first columns of a query.
fn renamed(query: &Query, columns: &[Ident], context: &PlanContext<'_>) -> Result<Box<Query>> {
    // Plan the original query first, so that errors have its positions.
    let PlannedQuery { names, .. } = context.query(query)?;
    if columns.len() > names.len() {
        let message = format!(
            "the column list has {} names, but the query has {} columns",
            columns.len(),
            names.len()
        );
        return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
    }
    let columns = columns.iter().map(Ident::to_string).collect::<Vec<_>>().join(", ");
    tessera_parser::query(&format!("SELECT * FROM ({query}) AS v ({columns})"))
}

fn table_as(
    name: Vec<String>,
    query: PlannedQuery,
    temporary: bool,
    if_not_exists: bool,
    or_replace: bool,
) -> Result<Statement> {
    let create = CreateTableAs { name, query, temporary, if_not_exists, or_replace };
    Ok(Statement::CreateTableAs(Box::new(create)))
}

pub(crate) fn create_table(create: &CreateTable, context: &PlanContext<'_>) -> Result<Statement> {
    let CreateTable {
        or_replace,
        temporary,
        external,
        dynamic,
        global,
        if_not_exists,
        transient,
        volatile,
        iceberg,
        snapshot,
        name,
        columns,
        constraints,
        hive_distribution,
        hive_formats,
        table_options,
        file_format,
        location,
        query,
        without_rowid,
        like,
        clone,
        version,
        comment,
        on_commit,
        on_cluster,
        primary_key,
        order_by,
        partition_by,
        cluster_by,
        clustered_by,
        inherits,
        partition_of,
        for_values,
        strict,
        copy_grants,
        enable_schema_evolution,
        change_tracking,
        data_retention_time_in_days,
        max_data_extension_time_in_days,
        default_ddl_collation,
        with_aggregation_policy,
        with_row_access_policy,
        with_storage_lifecycle_policy,
        with_tags,
        external_volume,
        base_location,
        catalog,
        catalog_sync,
        storage_serialization_policy,
        target_lag,
        warehouse,
        refresh_mode,
        initialize,
        require_user,
        diststyle,
        distkey,
        sortkey,
        backup,
    } = create;
    let hive = |format: &HiveFormat| {
        let HiveFormat { row_format, serde_properties, storage, location } = format;
        row_format.is_some()
            || serde_properties.is_some()
            || storage.is_some()
            || location.is_some()
    };
    refuse(
        "CREATE TABLE",
        &[
            ("EXTERNAL", *external),
            ("DYNAMIC", *dynamic),
            ("GLOBAL or LOCAL", global.is_some()),
            ("TRANSIENT", *transient),
            ("VOLATILE", *volatile),
            ("ICEBERG", *iceberg),
            ("SNAPSHOT", *snapshot),
            ("LIKE", like.is_some()),
            ("CLONE", clone.is_some()),
            ("PARTITION OF", partition_of.is_some() || for_values.is_some()),
            ("INHERITS", inherits.is_some()),
            ("ON COMMIT", on_commit.is_some()),
            ("PARTITION BY", partition_by.is_some()),
            ("ORDER BY", order_by.is_some()),
            ("CLUSTER BY", cluster_by.is_some()),
            ("CLUSTERED BY", clustered_by.is_some()),
            ("PRIMARY KEY", primary_key.is_some()),
            ("options", !matches!(table_options, CreateTableOptions::None)),
            (
                "PARTITIONED BY or SKEWED BY",
                !matches!(hive_distribution, HiveDistributionStyle::NONE),
            ),
            ("ROW FORMAT or STORED AS", hive_formats.as_ref().is_some_and(hive)),
            ("a file's format", file_format.is_some()),
            (
                "LOCATION",
                location.is_some() || base_location.is_some() || external_volume.is_some(),
            ),
            ("WITHOUT ROWID", *without_rowid),
            ("STRICT", *strict),
            ("a version", version.is_some()),
            ("COMMENT", comment.is_some()),
            ("ON CLUSTER", on_cluster.is_some()),
            ("COPY GRANTS", *copy_grants),
            ("ENABLE_SCHEMA_EVOLUTION", enable_schema_evolution.is_some()),
            ("CHANGE_TRACKING", change_tracking.is_some()),
            ("DATA_RETENTION_TIME_IN_DAYS", data_retention_time_in_days.is_some()),
            ("MAX_DATA_EXTENSION_TIME_IN_DAYS", max_data_extension_time_in_days.is_some()),
            ("DEFAULT_DDL_COLLATION", default_ddl_collation.is_some()),
            ("WITH AGGREGATION POLICY", with_aggregation_policy.is_some()),
            ("WITH ROW ACCESS POLICY", with_row_access_policy.is_some()),
            ("WITH STORAGE LIFECYCLE POLICY", with_storage_lifecycle_policy.is_some()),
            ("WITH TAG", with_tags.is_some()),
            ("CATALOG", catalog.is_some() || catalog_sync.is_some()),
            ("STORAGE_SERIALIZATION_POLICY", storage_serialization_policy.is_some()),
            ("TARGET_LAG", target_lag.is_some()),
            ("WAREHOUSE", warehouse.is_some()),
            ("REFRESH_MODE", refresh_mode.is_some()),
            ("INITIALIZE", initialize.is_some()),
            ("REQUIRE USER", *require_user),
            ("DISTSTYLE", diststyle.is_some()),
            ("DISTKEY", distkey.is_some()),
            ("SORTKEY", sortkey.is_some()),
            ("BACKUP", backup.is_some()),
        ],
    )?;
    let Some(query) = query else {
        return Err(Error::unsupported(
            "CREATE TABLE without AS is not supported; write CREATE TABLE name AS query or CREATE EXTERNAL TABLE",
        ));
    };
    if !columns.is_empty() || !constraints.is_empty() {
        return Err(Error::unsupported(
            "CREATE TABLE AS with column types or constraints is not supported; cast columns in the query",
        ));
    }
    table_as(parts(name)?, context.stored_query(query)?, *temporary, *if_not_exists, *or_replace)
}

pub(crate) fn create_view(view: &CreateView, context: &PlanContext<'_>) -> Result<Statement> {
    let CreateView {
        or_alter,
        or_replace,
        materialized,
        secure,
        name,
        name_before_not_exists: _,
        columns,
        query,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists,
        // All views live until the session ends.
        temporary: _,
        copy_grants,
        to,
        params,
    } = view;
    let has_type = |column: &ViewColumnDef| {
        let ViewColumnDef { name: _, data_type, options } = column;
        data_type.is_some() || options.is_some()
    };
    refuse(
        "CREATE VIEW",
        &[
            ("OR ALTER", *or_alter),
            ("MATERIALIZED", *materialized),
            ("SECURE", *secure),
            ("IF NOT EXISTS", *if_not_exists),
            ("types or options of columns", columns.iter().any(has_type)),
            ("options", !matches!(options, CreateTableOptions::None)),
            ("CLUSTER BY", !cluster_by.is_empty()),
            ("COMMENT", comment.is_some()),
            ("WITH NO SCHEMA BINDING", *with_no_schema_binding),
            ("COPY GRANTS", *copy_grants),
            ("TO", to.is_some()),
            ("ALGORITHM, DEFINER or SECURITY", params.is_some()),
        ],
    )?;
    // Reject a view with a query that cannot be planned.
    let query = match columns.is_empty() {
        true => query.clone(),
        false => {
            let columns: Vec<Ident> = columns.iter().map(|column| column.name.clone()).collect();
            renamed(query, &columns, context)?
        }
    };
    // A view is read without values.
    let without = Parameters::default();
    let planned = Box::new(context.in_mode(Mode::Given(&without)).query(&query)?);
    let query = query.to_string();
    Ok(Statement::CreateView { name: parts(name)?, query, planned, or_replace: *or_replace })
}

/// Plans DROP of tables and views.
pub(crate) fn drop(dropped: &SqlStatement) -> Result<Statement> {
    let SqlStatement::Drop {
        object_type,
        if_exists,
        names,
        cascade,
        // No object depends on a table or view, so RESTRICT never applies.
        restrict: _,
        purge,
        temporary,
        table,
    } = dropped
    else {
        return Err(Error::internal("drop called for another statement"));
    };
    let view = match object_type {
        ObjectType::Table => false,
        ObjectType::View => true,
        other => return Err(Error::unsupported(format!("DROP {other} is not supported"))),
    };
    refuse(
        "DROP",
        &[
            ("CASCADE", *cascade),
            ("PURGE", *purge),
            ("TEMPORARY", *temporary),
            ("ON", table.is_some()),
        ],
    )?;
    let names = names.iter().map(parts).collect::<Result<Vec<_>>>()?;
    Ok(Statement::Drop { names, view, if_exists: *if_exists })
}

pub(crate) fn analyze(analyze: &Analyze) -> Result<Statement> {
    let Analyze {
        table_name,
        partitions,
        for_columns,
        columns,
        cache_metadata,
        noscan,
        compute_statistics,
        has_table_keyword: _,
    } = analyze;
    let more = [
        ("PARTITION", partitions.is_some()),
        ("columns", *for_columns || !columns.is_empty()),
        ("CACHE METADATA", *cache_metadata),
        ("NOSCAN", *noscan),
        ("COMPUTE STATISTICS", *compute_statistics),
    ];
    if let Some((part, _)) = more.iter().find(|(_, is_there)| *is_there) {
        let message = format!(
            "ANALYZE with {part} is not supported; write ANALYZE, or ANALYZE and the name of a table"
        );
        return Err(Error::unsupported(message));
    }
    Ok(Statement::Analyze { name: table_name.as_ref().map(parts).transpose()? })
}

/// Rejects the first unsupported clause that is present.
pub(crate) fn refuse(statement: &str, parts: &[(&str, bool)]) -> Result<()> {
    match parts.iter().find(|(_, is_there)| *is_there) {
        Some((part, _)) => {
            Err(Error::unsupported(format!("{statement} with {part} is not supported")))
        }
        None => Ok(()),
    }
}
