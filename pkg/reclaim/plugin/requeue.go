package plugin

// StartsAttempt reports whether the action begins an attempt to delete or to recycle the
// volume. After a failure, the next attempt waits for a backoff.
func (a Action) StartsAttempt() bool {
	return a == Confirm || a == DeleteVolume || a == CreateRecycler
}

// NeedsRequeue reports whether a volume that waits for the reason waits for another object,
// and is requeued in case the event of that object is missed.
func (r Reason) NeedsRequeue() bool {
	return r == HandleShared || r == VolumeUsed || r == RecyclerPodUnfinished
}
