package balancer_test

import (
	"reflect"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/teardown/balancer"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, ServiceLB, Snapshot)
	enumtest.ExpectNames(t, NoContent, ContentOfGroup)
	enumtest.ExpectNames(t, Leave, Delete)
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"#30 a Service with the finalizer":       {State{Kind: ServiceLB, Held: true, Addressed: true}, Decision{Delete, ServesBalancer}},
		"#31 a Service with an address only":     {State{Kind: ServiceLB, Addressed: true}, Decision{Delete, ServesBalancer}},
		"#31 a Service without either":           {State{Kind: ServiceLB}, Decision{Delete, ServesBalancer}},
		"#02 a Service of volumes":               {State{Kind: ServiceLB, Held: true, Serving: true}, Decision{Wait, ServesVolumes}},
		"#02 a Service of volumes, deleted":      {State{Kind: ServiceLB, Serving: true, Deleting: true}, Decision{Wait, Terminating}},
		"#30 an Ingress with a finalizer":        {State{Kind: Route, Held: true}, Decision{Delete, ServesBalancer}},
		"#32 an Ingress without a finalizer":     {State{Kind: Route, Addressed: true}, Decision{Leave, NoFinalizer}},
		"#32 label":                              {State{Kind: ServiceLB, Held: true, Preserved: true}, Decision{Leave, Preserved}},
		"#32 label on a Gateway":                 {State{Kind: Route, Held: true, Preserved: true}, Decision{Leave, Preserved}},
		"#32 type changed, finalizer left":       {State{Kind: ServiceOther, Held: true}, Decision{Wait, TypeChanged}},
		"#32 type changed, deleted":              {State{Kind: ServiceOther, Held: true, Deleting: true}, Decision{Wait, TypeChanged}},
		"a Service of another type":              {State{Kind: ServiceOther}, Decision{Leave, Internal}},
		"a Service of another type, deleted":     {State{Kind: ServiceOther, Deleting: true}, Decision{Leave, Internal}},
		"#33 the address of our API server":      {State{Kind: ServiceLB, Held: true, LeadsToAPI: true}, Decision{Leave, LeadsToAPI}},
		"#33 a Gateway before our API server":    {State{Kind: Route, Held: true, LeadsToAPI: true}, Decision{Leave, LeadsToAPI}},
		"a deleted Service":                      {State{Kind: ServiceLB, Held: true, Deleting: true}, Decision{Wait, Terminating}},
		"a deleted Ingress":                      {State{Kind: Route, Held: true, Deleting: true}, Decision{Wait, Terminating}},
		"#34 a snapshot, Delete":                 {State{Kind: Snapshot, Held: true, Content: ContentDelete}, Decision{Delete, PolicyDelete}},
		"#34 a snapshot without a content":       {State{Kind: Snapshot}, Decision{Delete, PolicyDelete}},
		"#34 a snapshot, Retain":                 {State{Kind: Snapshot, Content: ContentKept}, Decision{Leave, PolicyRetain}},
		"#34 a snapshot, content not read":       {State{Kind: Snapshot, Content: ContentUnread}, Decision{Wait, ContentUnreadable}},
		"#34 a snapshot of a group":              {State{Kind: Snapshot, Content: ContentOfGroup}, Decision{Leave, GroupMember}},
		"#34 a snapshot with the label":          {State{Kind: Snapshot, Content: ContentDelete, Preserved: true}, Decision{Leave, Preserved}},
		"#34 a deleted snapshot":                 {State{Kind: Snapshot, Content: ContentDelete, Deleting: true}, Decision{Wait, Terminating}},
		"a snapshot leads nowhere":               {State{Kind: Snapshot, LeadsToAPI: true}, Decision{Delete, PolicyDelete}},
		"#33 the address of our API, with label": {State{Kind: ServiceLB, LeadsToAPI: true, Preserved: true}, Decision{Leave, LeadsToAPI}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.state); got != tc.want {
				t.Errorf("Decide(%+v) = %v, want %v", tc.state, got, tc.want)
			}
		})
	}
}

// states calls yield for every state.
func states(yield func(State)) {
	if fields := reflect.TypeFor[State]().NumField(); fields != 2+6 {
		panic("a field of State is not enumerated")
	}
	for kind := range Snapshot + 1 {
		for content := range ContentOfGroup + 1 {
			for bits := range 1 << 6 {
				has := func(bit int) bool { return bits>>bit&1 == 1 }
				yield(State{Kind: kind, Preserved: has(0), Deleting: has(1), Held: has(2), Addressed: has(3), LeadsToAPI: has(4),
					Serving: has(5), Content: content})
			}
		}
	}
}

func TestKeptObjectIsNeverDeleted(t *testing.T) {
	states(func(s State) {
		kept := s.Preserved || s.Kind != Snapshot && s.LeadsToAPI || s.Kind == ServiceOther || s.Kind == Route && !s.Held ||
			s.Kind == Snapshot && s.Content != ContentDelete && s.Content != NoContent
		if d := Decide(s); d.Action == Delete && (kept || s.Deleting || s.Kind == ServiceLB && s.Serving) {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

// What a controller holds is deleted or awaited, unless somebody wants to keep it.
func TestHeldObjectIsNotForgotten(t *testing.T) {
	states(func(s State) {
		kept := s.Preserved || s.Kind != Snapshot && s.LeadsToAPI ||
			s.Kind == Snapshot && (s.Content == ContentKept || s.Content == ContentOfGroup)
		if d := Decide(s); d.Action == Leave && s.Held && !kept || d.Reason == "" {
			t.Errorf("Decide(%+v) = %v", s, d)
		}
	})
}

// The end of an object shows the end of what its controller made if the controller holds it, or made nothing.
func TestEvident(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  bool
	}{
		"#30 a finalizer":                {State{Kind: ServiceLB, Held: true, Addressed: true}, true},
		"#31 an address only":            {State{Kind: ServiceLB, Addressed: true}, false},
		"#31 neither":                    {State{Kind: ServiceLB}, true},
		"a snapshot with a finalizer":    {State{Kind: Snapshot, Held: true}, true},
		"a snapshot without a finalizer": {State{Kind: Snapshot}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.Evident(); got != tc.want {
				t.Errorf("%+v: Evident() = %t, want %t", tc.state, got, tc.want)
			}
		})
	}
}

func TestEveryDecisionIsKnown(t *testing.T) {
	states(func(s State) { enumtest.ExpectKnown(t, Decide(s).Action) })
}
