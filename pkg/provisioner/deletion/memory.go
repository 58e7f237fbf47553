package deletion

// done is what is remembered of a volume that still exists.
type done struct {
	// volumeDeleted: DeleteVolume succeeded.
	volumeDeleted bool
	// objectDeleted: the PersistentVolume was deleted.
	objectDeleted bool
}
