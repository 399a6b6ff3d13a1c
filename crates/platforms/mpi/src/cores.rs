//! Whether ranks have cores of their own.

/// Where launchers of MPI tell a process how many ranks there are on its machine.
const LOCAL_RANKS: [&str; 3] = ["MPI_LOCALNRANKS", "PMIX_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"];

/// Whether this machine has fewer cores than it has ranks. Where the launcher does not say how many
/// these are, each has its own.
pub(crate) fn are_shared() -> bool {
    let ranks = LOCAL_RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok());
    ranks.is_some_and(|ranks| ranks > online())
}

/// The cores of the machine, not only those that this rank is bound to.
fn online() -> usize {
    // SAFETY: the call takes a number, gives one, and touches no memory of ours.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(cores).unwrap_or(usize::MAX)
}
