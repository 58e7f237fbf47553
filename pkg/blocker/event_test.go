package blocker_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestEventNames(t *testing.T) {
	enumtest.ExpectNames(t, blocker.NoEvent, blocker.SendEvent)
	enumtest.ExpectNames(t, blocker.NamespaceTerminating, blocker.WaitingLong)
}

func TestDecideEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		state blocker.EventState
		want  blocker.EventDecision
	}{
		"just deleted":     {blocker.EventState{}, blocker.EventDecision{Action: blocker.Postpone, Reason: blocker.WaitingBriefly}},
		"waiting for 30 s": {blocker.EventState{Waited: true}, blocker.EventDecision{Action: blocker.SendEvent, Reason: blocker.WaitingLong}},
		"event was sent": {blocker.EventState{Waited: true, SentRecently: true},
			blocker.EventDecision{Action: blocker.Postpone, Reason: blocker.SentRecently}},
		"driver refuses, with its event": {blocker.EventState{Waited: true, MoreExactEvent: true},
			blocker.EventDecision{Action: blocker.Postpone, Reason: blocker.MoreExactEvent}},
		"namespace is being deleted": {blocker.EventState{Waited: true, NamespaceTerminating: true},
			blocker.EventDecision{Action: blocker.NoEvent, Reason: blocker.NamespaceTerminating}},
		"namespace is deleted, just begun": {blocker.EventState{NamespaceTerminating: true},
			blocker.EventDecision{Action: blocker.NoEvent, Reason: blocker.NamespaceTerminating}},
		"event and more exact event, later": {blocker.EventState{Waited: true, SentRecently: true, MoreExactEvent: true},
			blocker.EventDecision{Action: blocker.Postpone, Reason: blocker.MoreExactEvent}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := blocker.DecideEvent(tc.state); got != tc.want {
				t.Errorf("DecideEvent(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// In every state: an event is sent only after the delay, in a namespace that takes events,
// and beside no other event; and no wait stays without an event for ever.
func TestEventIsSentInOneStateOnly(t *testing.T) {
	for bits := range 16 {
		s := blocker.EventState{Waited: bits&1 != 0, SentRecently: bits&2 != 0, MoreExactEvent: bits&4 != 0,
			NamespaceTerminating: bits&8 != 0}
		decision := blocker.DecideEvent(s)
		if sends, may := decision.Action == blocker.SendEvent, s == (blocker.EventState{Waited: true}); sends != may {
			t.Errorf("DecideEvent(%+v) = %v", s, decision)
		}
		if never := decision.Action == blocker.NoEvent; never != s.NamespaceTerminating {
			t.Errorf("DecideEvent(%+v) = %v", s, decision)
		}
	}
}

func TestEventTextNamesReasonHolderAndNextStep(t *testing.T) {
	for name, tc := range map[string]struct {
		blocker blocker.Blocker
		want    string
	}{
		"complete": {
			blocker.Blocker{Reason: blocker.ClaimExists, Holder: "PersistentVolumeClaim shop/data",
				Next: "kubectl delete pvc data -n shop"},
			"ClaimExists: The volume is bound to a claim that exists. Waiting for PersistentVolumeClaim shop/data. Next: kubectl delete pvc data -n shop",
		},
		"reason only": {blocker.Blocker{Reason: blocker.CloneRunning}, "CloneRunning: A volume is being cloned from the claim."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.blocker.EventText(); got != tc.want {
				t.Errorf("EventText() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEventTextFitsIntoEvent(t *testing.T) {
	for _, reason := range blocker.Reasons() {
		text := blocker.EventText(reason, strings.Repeat("ü", 600), "wait")
		if len(text) > 1024 || !utf8.ValidString(text) || !strings.HasPrefix(text, reason.String()) {
			t.Errorf("the text of %v has %d bytes: %.80s", reason, len(text), text)
		}
	}
}
