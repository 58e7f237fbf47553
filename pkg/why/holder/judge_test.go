package holder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// allStates returns all states of a controller that lists can show.
func allStates() []blocker.ControllerState {
	var all []blocker.ControllerState
	for workload := blocker.WorkloadUnseen; workload <= blocker.WorkloadReady; workload++ {
		for lease := blocker.LeaseUnseen; lease <= blocker.LeaseExpiredTwice; lease++ {
			for _, uninstalled := range []bool{false, true} {
				all = append(all, blocker.ControllerState{Workload: workload, Lease: lease, Uninstalled: uninstalled})
			}
		}
	}
	return all
}

func TestControllersOfOneFamily(t *testing.T) {
	for _, first := range allStates() {
		for _, second := range allStates() {
			got := joined([]Finding{{State: first}, {State: second}}).State
			reason, verdict := blocker.JudgeController(got)
			firstReason, firstVerdict := blocker.JudgeController(first)
			secondReason, secondVerdict := blocker.JudgeController(second)
			if acts := firstReason == blocker.ControllerActs ||
				secondReason == blocker.ControllerActs; acts != (reason == blocker.ControllerActs) {
				t.Errorf("%+v and %+v: %v", first, second, reason)
			}
			installed := !isTraceless(second) || second.Uninstalled
			if proven := firstVerdict == blocker.Stuck && (secondVerdict == blocker.Stuck ||
				!installed); proven != (verdict == blocker.Stuck) {
				t.Errorf("%+v and %+v: %v", first, second, verdict)
			}
			if reason == blocker.ControllerGone && (firstReason != reason || installed && secondReason != reason) {
				t.Errorf("%+v and %+v: %v, though one of them only fails", first, second, reason)
			}
		}
	}
}

func TestAlternativeWithoutTraceIsNoController(t *testing.T) {
	gone := blocker.ControllerState{Workload: blocker.WorkloadStopped, Lease: blocker.LeaseAbsent}
	traceless := blocker.ControllerState{Workload: blocker.WorkloadAbsent, Lease: blocker.LeaseAbsent}
	if reason, _ := blocker.JudgeController(joined([]Finding{{State: gone}, {State: traceless}}).
		State); reason != blocker.ControllerGone {
		t.Errorf("the reason is %v, want ControllerGone", reason)
	}
	if reason, _ := blocker.JudgeController(joined([]Finding{{State: traceless}, {State: gone}}).
		State); reason != blocker.ControllerUnseen {
		t.Errorf("the reason is %v, want ControllerUnseen: the usual controller may run outside", reason)
	}
}

// The replicas that stand by act once their Lease is deleted: that is the next step if all others are gone.
func TestControllerOnStandbyComesFirst(t *testing.T) {
	standby := Finding{State: besideStandby(blocker.WorkloadReady, blocker.LeaseAbsent), StandsBy: true,
		Next: "delete the Lease"}
	for _, usual := range allStates() {
		reason, verdict := blocker.JudgeController(usual)
		got := joined([]Finding{{State: usual, Next: "start it"}, standby})
		gotReason, gotVerdict := blocker.JudgeController(got.State)
		switch {
		case reason == blocker.ControllerGone && (got.Next != standby.Next || gotVerdict != blocker.Stuck):
			t.Errorf("%+v: %v, next %q", usual, gotVerdict, got.Next)
		case reason != blocker.ControllerGone && gotReason != reason:
			t.Errorf("%+v: %v, want %v of the usual controller", usual, gotReason, reason)
		case got.StandsBy == (verdict == blocker.Waiting):
			t.Errorf("%+v: stands by: %t", usual, got.StandsBy)
		}
	}
}

// A leader without a visible workload may have its loops off while the other controller stands by.
func TestInvisibleControllerIsDoubtedInSwitch(t *testing.T) {
	for _, usual := range allStates() {
		for _, standsBy := range []bool{false, true} {
			findings := []Finding{{State: usual}, {StandsBy: standsBy, Next: "delete the Lease"}}
			doubtInvisible(findings)
			got := findings[0]
			_, before := blocker.JudgeController(usual)
			_, after := blocker.JudgeController(got.State)
			invisible := usual.Workload == blocker.WorkloadAbsent || usual.Workload == blocker.WorkloadUnseen
			doubted := standsBy && invisible && before != blocker.Stuck
			if (got.Next != "") != doubted || !doubted && got.State != usual {
				t.Errorf("%+v, stands by %t: %+v", usual, standsBy, got)
			}
			if doubted && after != blocker.Unknown {
				t.Errorf("%+v: %v, want unknown", usual, after)
			}
		}
	}
}

func TestAllowsChange(t *testing.T) {
	for name, tc := range map[string]struct {
		groups, resources, verbs []string
		want                     bool
	}{
		"finalizers of the resource": {[]string{"a.example"}, []string{"widgets/finalizers"}, []string{"update"}, true},
		"the resource":               {[]string{"a.example"}, []string{"widgets"}, []string{"get", "patch"}, true},
		"all of the group":           {[]string{"a.example"}, []string{"*"}, []string{"*"}, true},
		"read only":                  {[]string{"a.example"}, []string{"widgets"}, []string{"get", "list"}, false},
		"status only":                {[]string{"a.example"}, []string{"widgets/status"}, []string{"update"}, false},
		"all groups":                 {[]string{"*"}, []string{"*"}, []string{"*"}, false},
		"another group":              {[]string{"b.example"}, []string{"widgets"}, []string{"update"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := allowsChange(policyRule(tc.groups, tc.resources, tc.verbs), "a.example", "widgets"); got != tc.want {
				t.Errorf("allowsChange = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRunsManager(t *testing.T) {
	w := withCommandAndImage("/manager", "registry.example/painter:v1")
	for manager, want := range map[string]bool{"manager": true, "painter": true, "kubectl-edit": false, "": false,
		"sweeper": false} {
		if got := runsManager(w, families.Manager{Name: manager}); got != want {
			t.Errorf("runsManager(%q) = %v, want %v", manager, got, want)
		}
	}
}

func TestRemovalTestsUIDAndValue(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "a.example/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "namespace": "ns", "uid": "u-1", "finalizers": []any{"first", "it's/mine"}},
	}}
	want := `kubectl patch widgets.a.example w --type=json -p '[{"op":"test","path":"/metadata/uid","value":"u-1"},` +
		`{"op":"test","path":"/metadata/finalizers/1","value":"it'\''s/mine"},{"op":"remove","path":"/metadata/finalizers/1"}]' -n ns --context c`
	f := Finder{Commands: cluster.Commands{Context: "c"}}
	if got := f.removalCommand(object, "widgets.a.example", "it's/mine"); got != want {
		t.Errorf("the command is\n%s, want\n%s", got, want)
	}
}

func policyRule(groups, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs}
}

func withCommandAndImage(command, image string) workload {
	return withContainers(corev1.Container{Name: "main", Image: image, Command: []string{command}})
}
