//! Addresses of objects: the kind of store, the store, the key.

use object_store::path::Path;
use tessera_types::{Error, Result};

/// The kinds of stores, with their schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Amazon S3 and compatible stores: `s3://bucket/key`.
    S3,
    /// Google Cloud Storage: `gs://bucket/key`.
    Google,
    /// Azure Blob Storage: `az://container/key`,
    /// `abfss://container@account.dfs.core.windows.net/key`.
    Azure,
    /// A web server: `https://host/path`. It does not support listing.
    Web,
}

/// A parsed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) kind: Kind,
    /// The common prefix of all addresses of the store: `s3://bucket/`.
    pub(crate) root: String,
    /// The rest: the plain key, or for a web server the percent-encoded path.
    pub(crate) key: String,
}

/// Returns the kind of store of an address; `None` for a local path.
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
    /// Parses an address.
    ///
    /// # Errors
    /// The scheme is unknown, or the bucket is missing.
    pub(crate) fn parse(address: &str) -> Result<Location> {
        let Some(kind) = kind_of(address) else {
            return Err(Error::semantic(format!(
                "unknown address '{address}'; expected s3://, gs://, az://, abfss://, http:// or https://"
            )));
        };
        let (scheme, rest) = address.split_once("://").unwrap_or_default();
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(Error::semantic(format!(
                "missing bucket in '{address}'; write {scheme}://bucket/path"
            )));
        }
        Ok(Location { kind, root: format!("{scheme}://{host}/"), key: key.to_string() })
    }

    /// Returns the address.
    pub(crate) fn address(&self) -> String {
        format!("{}{}", self.root, self.key)
    }

    /// Returns the key in the form of the store's client.
    ///
    /// # Errors
    /// The key is invalid.
    pub(crate) fn path(&self) -> Result<Path> {
        let key = self.key.trim_end_matches('/');
        let path = match self.kind {
            Kind::Web => Path::from_url_path(key),
            _ => Path::parse(key),
        };
        path.map_err(|error| {
            Error::semantic(format!("invalid object address '{}': {error}", self.address()))
        })
    }

    /// Returns the address of another key in the same store.
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
        assert!(Location::parse("s3:///x").unwrap_err().message().contains("missing bucket"));
        assert!(Location::parse("s3://b/a//b").unwrap().path().is_err());
    }
}
