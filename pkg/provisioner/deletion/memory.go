package deletion

// progress has the facts about a volume until the PersistentVolume is deleted.
type progress struct {
	// volumeDeleted: DeleteVolume succeeded.
	volumeDeleted bool
	// objectDeleted: the PersistentVolume was deleted.
	objectDeleted bool
}
