package runner

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// lease returns a Lease of 15 s that was renewed age ago.
func lease(holder string, age time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: now.Add(-age)},
	}}
}

func TestLeaderLease(t *testing.T) {
	for name, tc := range map[string]struct {
		lease *coordinationv1.Lease
		want  rollback.LeaderLease
	}{
		"absent":               {nil, rollback.LeaseAbsent},
		"Exeunt leads":         {lease("pod_exeunt", time.Second), rollback.LeaseExeunt},
		"upstream leads":       {lease("pod", time.Second), rollback.LeaseOther},
		"renewed in future":    {lease("pod_exeunt", -time.Hour), rollback.LeaseExeunt},
		"expired once":         {lease("pod_exeunt", 20*time.Second), rollback.LeaseExpired},
		"expired twice":        {lease("pod_exeunt", 31*time.Second), rollback.LeaseExpiredTwice},
		"given up just now":    {lease("", 2*time.Second), rollback.LeaseExpired},
		"given up long ago":    {lease("", time.Minute), rollback.LeaseExpiredTwice},
		"never renewed, named": {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("standby")}}, rollback.LeaseExpired},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leaderLease(tc.lease, now); got != tc.want {
				t.Errorf("leaderLease = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestKindOfContainer(t *testing.T) {
	for name, tc := range map[string]struct {
		image string
		words []string
		want  programKind
	}{
		"our provisioner":             {"r/exeunt/provisioner:v1", nil, provisionerKind},
		"our provisioner by digest":   {"r:5000/exeunt/provisioner@sha256:00", nil, provisionerKind},
		"a mirror, our command":       {"mirror/x:1", []string{"/provisioner", "--v=5"}, provisionerKind},
		"our provisioner, flat":       {"registry:5000/provisioner:v1", nil, provisionerKind},
		"our provisioner, mirrored":   {"rancher/mirrored-exeunt-provisioner:v1", nil, provisionerKind},
		"upstream's, mirrored":        {"rancher/mirrored-sig-storage-csi-provisioner:v5.2.0", nil, otherKind},
		"another's, mirrored":         {"rancher/mirrored-longhornio-csi-provisioner:v5.2.0", nil, otherKind},
		"exeunt in that image":        {"r/exeunt/provisioner:v1", []string{"/exeunt", "audit"}, otherKind},
		"upstream's provisioner":      {"registry/sig-storage/csi-provisioner:v6.3.0", nil, otherKind},
		"another provisioner":         {"quay.io/nfs-subdir-external-provisioner:v4", nil, otherKind},
		"our pv-controller":           {"r/exeunt/pv-controller:v1", []string{"/pv-controller"}, pvControllerKind},
		"kube-controller-manager":     {"registry/kube-controller-manager:v1.36.3", []string{"kube-controller-manager"}, loopsKind},
		"another program of its name": {"r/x", []string{"/bin/sh"}, otherKind},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kindOf(&corev1.Container{Image: tc.image, Command: tc.words}); got != tc.want {
				t.Errorf("kindOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLoopsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		command, args []string
		want          loopSwitch
	}{
		"no flag":                    {[]string{"kube-controller-manager"}, nil, loopsOn},
		"other controllers are off":  {nil, []string{"--controllers=*,-ttl"}, loopsOn},
		"all three loops are off":    {[]string{"x", "--controllers=*," + exclusions()}, nil, loopsOff},
		"one loop is off, in args":   {nil, []string{"--controllers=*,-persistentvolume-binder-controller"}, loopsOff},
		"the flag occurs two times":  {nil, []string{"--controllers=*", "--controllers=-persistentvolume-binder-controller"}, loopsOff},
		"all three loops are named":  {nil, []string{"--controllers=" + strings.ReplaceAll(exclusions(), ",-", ",")[1:]}, loopsOn},
		"one loop alone is named":    {nil, []string{"--controllers=persistentvolume-binder-controller"}, loopsOff},
		"the flag is two words":      {[]string{"x", "--controllers", "*,-persistentvolume-binder-controller"}, nil, loopsOff},
		"an old name of the binder":  {nil, []string{"--controllers=*,-persistentvolume-binder"}, loopsOff},
		"old names of protections":   {nil, []string{"--controllers=*,-pv-protection,-pvc-protection"}, loopsOff},
		"only others are named":      {nil, []string{"--controllers=ttl-controller"}, loopsOff},
		"a similar flag is no value": {nil, []string{"--controllers-x=-persistentvolume-binder-controller"}, loopsOn},
	} {
		t.Run(name, func(t *testing.T) {
			if got := loopsOf(&corev1.Container{Command: tc.command, Args: tc.args}); got != tc.want {
				t.Errorf("loopsOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWorkloadOf(t *testing.T) {
	owned := func(kind, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "p", Labels: map[string]string{"pod-template-hash": "5f"},
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name}},
		}}
	}
	for want, pod := range map[string]*corev1.Pod{
		"deployment/csi":  owned("ReplicaSet", "csi-5f"),
		"statefulset/csi": owned("StatefulSet", "csi"),
		"daemonset/csi":   owned("DaemonSet", "csi"),
		"pod/p":           {ObjectMeta: metav1.ObjectMeta{Name: "p"}},
	} {
		if got := workloadOf(pod); got != want {
			t.Errorf("workloadOf = %q, want %q", got, want)
		}
	}
}

func TestDriverIsNamedByItsLease(t *testing.T) {
	o := Options{Stopped: []string{"csi.example.com"}, Unserved: []string{"gone.example.com"}}
	for name, want := range map[string]bool{
		"csi.example.com": true, "csi-example-com": true, "gone.example.com": true, "gone-example-com": true,
		"other.example.com": false, "": false,
	} {
		if got := o.named(name); got != want {
			t.Errorf("named(%q) = %t, want %t", name, got, want)
		}
	}
}

func TestMostCautiousServerCounts(t *testing.T) {
	order := []rollback.Server{rollback.ServerExeunt, rollback.ServerUnseen, rollback.ServerNone, rollback.ServerUpstream}
	for i, first := range order {
		for _, second := range order[i:] {
			if mostCautious(first, second) != first || mostCautious(second, first) != first {
				t.Errorf("mostCautious(%v, %v) is not %v", first, second, first)
			}
		}
	}
}

func TestPolicyNamesAreThoseOfTheManifests(t *testing.T) {
	text, err := deploy.Admission.ReadFile("admission/policy.yaml")
	if err != nil || strings.Count(string(text), "  name: "+deploy.Policy+"\n") != 2 {
		t.Errorf("deploy/admission/policy.yaml lacks the policy or the binding %s: %v", deploy.Policy, err)
	}
	text, err = deploy.Standby.ReadFile("pv-controller/standby/lease.yaml")
	if err != nil || !strings.Contains(string(text), "holderIdentity: "+standby+"\n") {
		t.Errorf("the standby Lease has another holder than %s: %v", standby, err)
	}
}

func TestUnreadableEntryIsSaved(t *testing.T) {
	owner := journal.Journal{Namespace: "n", Driver: "d.example.com"}
	broken := owner.Lease(journal.KindActive, 0, "h", journal.Custody{}, map[types.UID]string{"u": "\x1bnonsense"})
	text, err := savedText([]*coordinationv1.Lease{broken}, now)
	if err != nil || !strings.Contains(string(text), "# driver d.example.com: claim UID u, unreadable") ||
		!strings.Contains(string(text), "exeunt.io/e.u:") {
		t.Errorf("saved: %v\n%s", err, text)
	}
}

func TestPlanFitsTheTerminal(t *testing.T) {
	item := newItem(blocker.Object{Kind: "PersistentVolume", Name: strings.Repeat("x", 40)},
		"annotation exeunt.io/reclaim: done\x1b[2J",
		rollback.Decision{Action: rollback.Wait, Reason: rollback.ServerNotSeen}, nil)
	step := Step{Number: 6, State: rollback.Blocked, Title: "Title", By: "exeunt",
		Text: []string{strings.Repeat("word ", 60)}, Items: slices.Repeat([]Item{item}, shown+5)}
	plan := Plan{Steps: []Step{step}, Incomplete: []string{strings.Repeat("right ", 40)}}
	text := string(plan.text(80))
	for line := range strings.Lines(text) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 || strings.Contains(line, "\x1b") {
			t.Errorf("bad line %q", line)
		}
	}
	if !strings.Contains(text, "and 5 more: see -o json") || !strings.Contains(text, "incomplete: right") {
		t.Errorf("text:\n%s", text)
	}
}

func TestEveryEnumValueHasItsOwnName(t *testing.T) {
	enumtest.ExpectNames(t, otherKind, loopsKind)
	enumtest.ExpectNames(t, loopsUnseen, loopsOff)
}
