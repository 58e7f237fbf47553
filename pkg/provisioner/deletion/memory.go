package deletion

// progress is what is remembered about a volume until its PersistentVolume is deleted.
type progress struct {
	// volumeDeleted: DeleteVolume succeeded.
	volumeDeleted bool
	// objectDeleted: the PersistentVolume was deleted.
	objectDeleted bool
}
