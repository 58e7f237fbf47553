// Package stories shows what can go wrong with volumes, on our programs and on upstream's:
// "sandbox demo --against=upstream".
//
// A story is an entry of a table: a name, faults of the driver, and a function that acts as
// an administrator. Each story is run by one pair of controllers after the other, in one
// control plane, each with a new driver. Then another claim is created and deleted: once it
// is reclaimed, the queues have processed what came before. A pair gets some more seconds
// until the storage system is empty. What the storage system then has is left behind.
//
// In some stories our programs have the admission policy of deploy/admission, which is part of
// Exeunt: it is applied before our turn and removed before upstream's. A version of Kubernetes
// without MutatingAdmissionPolicy does not run these stories.
//
// Some stories have clusters of their own. The story of a teardown compares ways instead of programs: each way ends a
// cluster of upstream's programs, which are killed with their machines, and what storage and cloud then have is left.
//
// Our programs promise that nothing is left in any story. Upstream's results are reported,
// whatever they are.
package stories
