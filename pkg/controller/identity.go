package controller

// IdentitySuffix ends the holder identity of Exeunt's programs in Leases. Replacing one of
// them by upstream's program in the same pod changes leaseTransitions of the Lease.
const IdentitySuffix = "_exeunt"
