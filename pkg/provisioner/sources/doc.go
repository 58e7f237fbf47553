// Package sources has what the controllers of cloned claims and of snapshots share: adding
// the finalizer of a source before a volume is created from the source, and a lock per source
// that orders this with the removal of the finalizer.
package sources
