// Package engine joins what creates volumes (pkg/provisioner/provisioning), what deletes
// volumes (pkg/provisioner/deletion) and the journal (pkg/provisioner/journalstore) to one
// unit of work that runs while this process leads. The program provisioner and the
// library pkg/provisioner run the same engine; they differ in the storage backend.
// [SelectedNodes] and [ServedNode] are for the program.
package engine
