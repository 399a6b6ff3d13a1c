//! Detects machines with fewer cores than ranks.

/// The environment variables in which MPI launchers give the number of ranks on this machine.
const LOCAL_RANKS: [&str; 3] = ["MPI_LOCALNRANKS", "PMIX_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"];

/// Returns whether this machine has fewer cores than ranks; `false` if the launcher does not say
/// how many ranks it has.
pub(crate) fn are_shared() -> bool {
    let ranks = LOCAL_RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok());
    ranks.is_some_and(|ranks| ranks > online())
}

/// The cores of the machine, including those that this rank is not bound to.
fn online() -> usize {
    // SAFETY: the call takes and returns a number and does not access memory of this process.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(cores).unwrap_or(usize::MAX)
}
