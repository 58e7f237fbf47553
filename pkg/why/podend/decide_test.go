package podend_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/podend"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) { enumtest.ExpectNames(t, podend.NodeUnseen, podend.NodeReady) }

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state   podend.State
		reason  blocker.Reason
		verdict blocker.Verdict
	}{
		"within the grace period":             {podend.State{WithinGrace: true, Node: podend.NodeReady}, blocker.GracePeriod, blocker.Waiting},
		"within the grace period, node gone":  {podend.State{WithinGrace: true, Node: podend.NodeAbsent}, blocker.NodeGone, blocker.Stuck},
		"node just gone, collector alive":     {podend.State{WithinGrace: true, Node: podend.NodeAbsent, CollectorAlive: true}, blocker.NodeGone, blocker.Waiting},
		"node just gone, collector not seen":  {podend.State{WithinGrace: true, Node: podend.NodeAbsent, CollectorUnseen: true}, blocker.NodeGone, blocker.Unknown},
		"past the grace period, no collector": {podend.State{Node: podend.NodeAbsent}, blocker.NodeGone, blocker.Stuck},
		"just past it, collector alive":       {podend.State{JustEnded: true, Node: podend.NodeAbsent, CollectorAlive: true}, blocker.NodeGone, blocker.Waiting},
		"long past it, collector alive":       {podend.State{Node: podend.NodeAbsent, CollectorAlive: true}, blocker.NodeGone, blocker.Unknown},
		"just past it, collector not seen":    {podend.State{JustEnded: true, Node: podend.NodeAbsent, CollectorUnseen: true}, blocker.NodeGone, blocker.Unknown},
		"long past it, collector not seen":    {podend.State{Node: podend.NodeAbsent, CollectorUnseen: true}, blocker.NodeGone, blocker.Unknown},
		"just past it, no collector":          {podend.State{JustEnded: true, Node: podend.NodeAbsent}, blocker.NodeGone, blocker.Stuck},
		"kubelet alive and slow":              {podend.State{Node: podend.NodeReady, Lease: blocker.LeaseHeld}, blocker.KubeletStopping, blocker.Waiting},
		"kubelet alive, events not seen": {podend.State{Node: podend.NodeReady, Lease: blocker.LeaseHeld,
			EventsUnseen: true}, blocker.KubeletStopping, blocker.Unknown},
		"kubelet cannot unmount": {podend.State{Node: podend.NodeReady, Lease: blocker.LeaseHeld,
			ReportsError: true}, blocker.KubeletStopping, blocker.Stuck},
		"node not ready, kubelet long silent": {podend.State{Node: podend.NodeNotReady, Lease: blocker.LeaseExpiredTwice,
			SilentLong: true}, blocker.NodeUnreachable, blocker.Stuck},
		"node not ready, perhaps a reboot":     {podend.State{Node: podend.NodeNotReady, Lease: blocker.LeaseExpiredTwice}, blocker.NodeUnreachable, blocker.Unknown},
		"node not ready, no Lease, reboot":     {podend.State{Node: podend.NodeNotReady, Lease: blocker.LeaseAbsent}, blocker.NodeUnreachable, blocker.Unknown},
		"node not ready, kubelet reports":      {podend.State{Node: podend.NodeNotReady, Lease: blocker.LeaseHeld}, blocker.NodeUnreachable, blocker.Unknown},
		"node not ready, Lease not seen":       {podend.State{Node: podend.NodeNotReady}, blocker.NodeUnreachable, blocker.Unknown},
		"node not seen":                        {podend.State{}, blocker.KubeletStopping, blocker.Unknown},
		"node ready, Lease expired just now":   {podend.State{Node: podend.NodeReady, Lease: blocker.LeaseExpired}, blocker.KubeletStopping, blocker.Unknown},
		"node not seen, its Lease held":        {podend.State{Lease: blocker.LeaseHeld}, blocker.KubeletStopping, blocker.Waiting},
		"node not seen, kubelet reports error": {podend.State{ReportsError: true}, blocker.KubeletStopping, blocker.Stuck},
	} {
		t.Run(name, func(t *testing.T) {
			reason, verdict, keeps := podend.Decide(tc.state)
			if reason != tc.reason || verdict != tc.verdict || !keeps {
				t.Errorf("Decide(%+v) = %v, %v, %v, want %v, %v, true", tc.state, reason, verdict, keeps, tc.reason, tc.verdict)
			}
		})
	}
}

func TestPodIsStuckOnlyWithEvidence(t *testing.T) {
	for node := podend.NodeUnseen; node <= podend.NodeReady; node++ {
		for lease := blocker.LeaseUnseen; lease <= blocker.LeaseExpiredTwice; lease++ {
			for bits := range 256 {
				s := podend.State{
					KubeletFinished: bits&1 != 0, WithinGrace: bits&2 != 0, ReportsError: bits&4 != 0, CollectorAlive: bits&8 != 0,
					EventsUnseen:    bits&16 != 0,
					CollectorUnseen: bits&32 != 0, JustEnded: bits&64 != 0, SilentLong: bits&128 != 0, Node: node, Lease: lease,
				}
				expectEvidence(t, s)
			}
		}
	}
}

func expectEvidence(t *testing.T, s podend.State) {
	t.Helper()
	reason, verdict, keeps := podend.Decide(s)
	silent := s.SilentLong && (s.Lease == blocker.LeaseExpiredTwice || s.Lease == blocker.LeaseAbsent)
	mayCollect := s.CollectorAlive || s.CollectorUnseen
	proof := s.Node == podend.NodeAbsent && !mayCollect || s.Node == podend.NodeNotReady && silent || s.ReportsError &&
		!s.WithinGrace
	if verdict == blocker.Stuck && !proof {
		t.Errorf("%+v is called stuck: %v", s, reason)
	}
	if keeps == s.KubeletFinished {
		t.Errorf("Decide(%+v) says that the kubelet keeps the pod: %v", s, keeps)
	}
	collects := s.Node == podend.NodeAbsent && s.CollectorAlive && (s.WithinGrace || s.JustEnded)
	if s.Node == podend.NodeAbsent && keeps && (verdict == blocker.Waiting) != collects {
		t.Errorf("%+v is called %v, and its collector is alive and due: %v", s, verdict, collects)
	}
	if verdict == blocker.Waiting && !s.WithinGrace && !collects && s.Lease != blocker.LeaseHeld &&
		s.Node != podend.NodeReady {
		t.Errorf("%+v is called waiting, and no kubelet was seen alive", s)
	}
}
