// Licensed to the Apache Software Foundation (ASF) under one
// or more contributor license agreements.  See the NOTICE file
// distributed with this work for additional information
// regarding copyright ownership.  The ASF licenses this file
// to you under the Apache License, Version 2.0 (the
// "License"); you may not use this file except in compliance
// with the License.  You may obtain a copy of the License at
//
//   http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing,
// software distributed under the License is distributed on an
// "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY
// KIND, either express or implied.  See the License for the
// specific language governing permissions and limitations
// under the License.

/// Helper utilities for attached tokens used by AST helpers.
pub mod attached_token;
/// Utilities for parsing key/value style options in helper statements.
pub mod key_value_options;
/// Helpers for `CREATE DATABASE` statement construction/parsing.
pub mod stmt_create_database;
/// Helpers for `CREATE TABLE` statement construction/parsing.
pub mod stmt_create_table;
/// Helpers for data loading/unloading related statements (stages, PUT, COPY INTO).
pub mod stmt_data_loading;
