//! Removes shared memory that killed ranks leave behind.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The file system of shared memory segments.
const SHARED_MEMORY: &str = "/dev/shm/";

/// Removes shared memory segments that MPI libraries have created since then and that no process
/// maps any more. Libraries leave them to the last process that ends; when ranks are killed, none
/// removes them.
pub(super) fn remove_segments(since: SystemTime) {
    const MPI_PREFIXES: [&str; 6] =
        ["mpich_", "vader_segment", "sm_segment", "osc_", "open_mpi", "ucx_shm_"];
    let entries = std::fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten();
    let is_new_segment = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let is_mpi_segment =
            MPI_PREFIXES.iter().any(|start| name.to_string_lossy().starts_with(start));
        // The file system's time stamps may be coarser than the clock.
        let since = since - Duration::from_secs(1);
        is_mpi_segment
            && entry
                .metadata()
                .and_then(|data| data.modified())
                .is_ok_and(|modified| modified >= since)
    };
    let found: Vec<PathBuf> = entries.filter(is_new_segment).map(|entry| entry.path()).collect();
    if found.is_empty() {
        return;
    }
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let maps =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("maps")).ok());
    let mapped = maps.fold(String::new(), |all, maps| all + &maps);
    for path in found.iter().filter(|path| !mapped.contains(&*path.to_string_lossy())) {
        drop(std::fs::remove_file(path));
    }
}
