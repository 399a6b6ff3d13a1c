//! Where an object lies: the kind of store, the store, the key.

use object_store::path::Path;
use tessera_types::{Error, Result};

/// Kinds of stores, and the schemes that mean them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Amazon S3 and what speaks like it: `s3://bucket/key`.
    S3,
    /// Google Cloud Storage: `gs://bucket/key`.
    Google,
    /// Azure Blob Storage: `az://container/key`,
    /// `abfss://container@account.dfs.core.windows.net/key`.
    Azure,
    /// A web server: `https://host/path`. It has no listing.
    Web,
}

/// An address, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) kind: Kind,
    /// What every address of the store begins with: `s3://bucket/`.
    pub(crate) root: String,
    /// What follows: as the store spells it, but for a web server, where it is percent-encoded.
    pub(crate) key: String,
}

/// The kind of store an address means; none for a local path.
pub(crate) fn kind_of(address: &str) -> Option<Kind> {
    let (scheme, _) = address.split_once("://")?;
    Some(match scheme.to_ascii_lowercase().as_str() {
        "s3" | "s3a" => Kind::S3,
        "gs" => Kind::Google,
        "az" | "azure" | "abfs" | "abfss" => Kind::Azure,
        "http" | "https" => Kind::Web,
        _ => return None,
    })
}

impl Location {
    /// Takes an address apart.
    ///
    /// # Errors
    /// It has no known scheme, or names no bucket.
    pub(crate) fn parse(address: &str) -> Result<Location> {
        let Some(kind) = kind_of(address) else {
            return Err(Error::semantic(format!(
                "'{address}' is no address of an object; there are s3://, gs://, az://, abfss://, http:// and https://"
            )));
        };
        let (scheme, rest) = address.split_once("://").unwrap_or_default();
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(Error::semantic(format!(
                "'{address}' names no bucket; write {scheme}://bucket/path"
            )));
        }
        Ok(Location { kind, root: format!("{scheme}://{host}/"), key: key.to_string() })
    }

    /// The address again.
    pub(crate) fn address(&self) -> String {
        format!("{}{}", self.root, self.key)
    }

    /// The key as the store's client wants it.
    ///
    /// # Errors
    /// No object can have this key.
    pub(crate) fn path(&self) -> Result<Path> {
        let key = self.key.trim_end_matches('/');
        let path = match self.kind {
            Kind::Web => Path::from_url_path(key),
            _ => Path::parse(key),
        };
        path.map_err(|error| {
            Error::semantic(format!("'{}' can be no object's: {error}", self.address()))
        })
    }

    /// The address of another key of the same store.
    pub(crate) fn sibling(&self, path: &Path) -> String {
        format!("{}{path}", self.root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_parts() {
        let location = Location::parse("s3://bucket/a b/c%20.parquet").unwrap();
        assert_eq!((location.kind, &*location.root), (Kind::S3, "s3://bucket/"));
        assert_eq!(location.path().unwrap().as_ref(), "a b/c%20.parquet", "keys are not decoded");
        let web = Location::parse("https://host:8080/a%20b.csv").unwrap();
        assert_eq!(web.path().unwrap().as_ref(), "a b.csv", "paths of the web are");
        let azure =
            Location::parse("abfss://box@account.dfs.core.windows.net/t/x.parquet").unwrap();
        assert_eq!((azure.kind, &*azure.key), (Kind::Azure, "t/x.parquet"));
        assert_eq!(Location::parse("gs://b").unwrap().address(), "gs://b/");
    }

    #[test]
    fn what_is_no_address() {
        assert!(kind_of("/data/x.parquet").is_none() && kind_of("file:///x").is_none());
        assert!(Location::parse("s3:///x").unwrap_err().message().contains("names no bucket"));
        assert!(Location::parse("s3://b/a//b").unwrap().path().is_err());
    }
}
