// Package owners says which objects a foreground deletion waits for, from the metadata of
// owners and dependents.
//
// The garbage collector removes the finalizer foregroundDeletion of an owner once no
// dependent names the owner with blockOwnerDeletion true. Owners that are deleted in the
// foreground and own each other therefore wait for each other for ever, whatever the
// collector does.
package owners
