package claim

// PodState is what the decision about a pod that uses claims rests on.
type PodState struct {
	// Deleting: it has a deletionTimestamp, or its namespace has.
	Deleting bool
	// Mirror: the kubelet runs it from a file, and makes it again.
	Mirror bool
	// Unmarked: it uses a kept volume that is not marked yet.
	Unmarked bool
	// Requested: an ephemeral claim of it awaits a volume, so that the claim alone would have to wait.
	Requested bool
	// Unread: the volume of an ephemeral claim of it was not read live.
	Unread bool
	// Open: the wave of its claims has begun.
	Open bool
}

// DecidePod returns what happens to a pod that uses claims. It is total and pure. The deletion of a pod deletes its
// ephemeral claims, so what protects the disk of a claim protects the pod: kept volumes are marked before, a requested
// volume is awaited (the claim would go during CreateVolume), and volumes are read live.
func DecidePod(s PodState) Decision {
	switch {
	case s.Deleting:
		return Decision{Wait, PodTerminating}
	case s.Mirror:
		return Decision{Leave, MirrorPod}
	case s.Unmarked:
		return Decision{Wait, KeepingVolume}
	case !s.Open:
		return Decision{Wait, WaveClosed}
	case s.Requested:
		return Decision{Wait, ProvisioningRequested}
	case s.Unread:
		return Decision{Confirm, UsesClaims}
	}
	return Decision{Delete, UsesClaims}
}
