// Package cloning keeps claims that others are cloned from: Protect adds the
// finalizer provisioner.storage.kubernetes.io/cloning-protection before the driver
// is asked for a clone, and the controller executes
// [protection.IsUnneededCloneSource]: it takes the finalizer off a claim that is being
// deleted once no clone of it waits for its volume. A claim is looked at when it
// changes, and when a clone of it does or goes.
package cloning
