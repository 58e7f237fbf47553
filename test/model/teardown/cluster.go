package teardown

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// adder adds a step if it changes the state. Free steps happen sooner or later; faults and users may not.
type adder func(free bool, says string, change func(*State))

// cluster adds what everything in the cluster does.
func (w World) cluster(s State, add adder) {
	add(true, "the freeze gets into force", func(s *State) {
		if s.API.Freeze == teardown.Written {
			s.API.Freeze = teardown.InForce
		}
	})
	add(true, "the API server removes Alive", func(s *State) {
		if a := s.API.Alive; a.Deleting && !a.Held && !a.Participant {
			s.API.Alive = Alive{Started: a.Started}
		}
	})
	add(true, "the participant cleans up", func(s *State) { s.participate() })
	w.services(add)
	for n := range s.API.Sets {
		w.owner(n, add)
		w.leave(n, add)
		w.provisioner(n, add)
		w.storage(n, add)
	}
}

// participate is what an operator does on each event of Alive.
func (s *State) participate() {
	switch a := &s.API.Alive; {
	case !a.Participant || !alive.CleanUp(a.object(), began):
	case s.API.Bucket:
		s.API.Bucket = false
		if !s.Asked {
			s.Broken |= Unasked
		}
	default:
		a.Participant = false
	}
}

// object returns what package alive reads.
func (a Alive) object() *alive.Alive {
	object := alive.New()
	if a.Deleting {
		object.DeletionTimestamp = &metav1.Time{Time: began}
	}
	object.Spec.Protected = &a.Protected
	switch a.Word {
	case teardown.ExpiredWord:
		object.Spec.ConfirmedAt = &metav1.Time{Time: began.Add(-2 * time.Hour)}
	case teardown.ValidWord, teardown.OtherWord:
		object.Spec.ConfirmedAt = &metav1.Time{Time: began}
	case teardown.NoWord:
	}
	if a.Started {
		object.Status.Conditions = []metav1.Condition{{Type: alive.ConditionStarted, Status: metav1.ConditionTrue}}
	}
	return object
}

// owner is a StatefulSet: it makes the pod again, and of the first set the claim, unless the freeze refuses both.
func (w World) owner(n int, add adder) {
	add(true, "the owner makes a pod", func(s *State) {
		set := &s.API.Sets[n]
		free := !set.Pod.Exists && set.Claim.Phase != NoClaim && !set.Claim.Deleting
		if owned := n == 0 || !w.Idle; owned && free && s.API.Freeze != teardown.InForce {
			set.Pod = Pod{Exists: true, Again: !set.Pod.Again}
		}
	})
	add(true, "the owner makes a claim", func(s *State) {
		set := &s.API.Sets[n]
		free := set.Claim.Phase == NoClaim && !set.Claim.Again && !set.Volume.Exists && set.Call == NoCall && !set.Disk
		if n == 0 && free && s.API.Freeze != teardown.InForce {
			set.Claim, set.Recorded = Claim{Phase: Requested, Again: true}, false
		}
	})
}

// leave adds how a pod and a claim go that are deleted.
func (w World) leave(n int, add adder) {
	add(true, "the kubelet ends a pod", func(s *State) {
		if set := &s.API.Sets[n]; set.Pod.Terminating {
			set.Pod = Pod{Again: set.Pod.Again}
		}
	})
	add(true, "a claim goes", func(s *State) {
		if set := &s.API.Sets[n]; set.Claim.Deleting && !set.Pod.Exists {
			set.Claim = Claim{Again: set.Claim.Again}
		}
	})
}

// provisioner makes a volume. It writes the PersistentVolume also if the claim is gone by then.
func (w World) provisioner(n int, add adder) {
	add(true, "CreateVolume is called", func(s *State) {
		set := &s.API.Sets[n]
		if set.Claim.Phase == Requested && !set.Claim.Deleting && set.Call == NoCall && !set.Volume.Exists {
			set.Call = Sent
		}
	})
	add(true, "the disk is made", func(s *State) {
		if set := &s.API.Sets[n]; set.Call == Sent {
			set.Call, set.Disk = Done, true
		}
	})
	add(true, "the PersistentVolume is written", func(s *State) {
		if set := &s.API.Sets[n]; set.Call == Done {
			set.Call, set.Volume = NoCall, Volume{Exists: true, Deletable: true, Again: set.Claim.Again}
			set.Unknown = false
		}
	})
	add(true, "the claim is bound", func(s *State) {
		set := &s.API.Sets[n]
		if set.Claim.Phase == Requested && set.Volume.Exists && set.Volume.Again == set.Claim.Again {
			set.Claim.Phase, set.Slow = Bound, false
		}
	})
}

// storage deletes the disk of a released volume, as its policy says.
func (w World) storage(n int, add adder) {
	add(true, "a released volume is deleted", func(s *State) {
		set := &s.API.Sets[n]
		if !set.released() || !set.Volume.Deletable {
			return
		}
		if set.Must {
			s.Broken |= DiskLost
		}
		set.Disk, set.Volume = false, Volume{}
	})
}
