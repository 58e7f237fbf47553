package termination_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/exeunt-io/exeunt/pkg/termination"
)

func TestPeriodOf(t *testing.T) {
	for name, tc := range map[string]struct {
		labels      map[string]string
		served, bad bool
	}{
		"no label":          {nil, false, false},
		"a period":          {map[string]string{Label: "30m"}, true, false},
		"no deadline":       {map[string]string{Label: "Never"}, true, false},
		"#05 a day":         {map[string]string{Label: "1d"}, false, true},
		"#05 empty":         {map[string]string{Label: ""}, false, true},
		"#61 control plane": {map[string]string{Label: "30m", "node-role.kubernetes.io/control-plane": ""}, false, true},
		"the older label":   {map[string]string{Label: "30m", "node-role.kubernetes.io/master": ""}, false, true},
	} {
		_, served, err := PeriodOf(&metav1.ObjectMeta{Labels: tc.labels})
		if served != tc.served || (err != nil) != tc.bad {
			t.Errorf("%s: served %v, error %v", name, served, err)
		}
	}
}

func TestRequestedIsWithoutGracePeriod(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 30, 0, time.UTC)
	seconds := int64(30)
	node := &metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: at}, DeletionGracePeriodSeconds: &seconds}
	if got := Requested(node); !got.Equal(at.Add(-30 * time.Second)) {
		t.Errorf("requested at %v", got)
	}
	if got := Requested(&metav1.ObjectMeta{}); !got.IsZero() {
		t.Errorf("a live object was requested at %v", got)
	}
}

func TestTaintsOfNode(t *testing.T) {
	added := time.Date(2026, 11, 29, 12, 0, 30, 0, time.UTC)
	node := &v1.Node{}
	if ours, others := OutOfService(node); ours || others || !FirstAction(node, added).IsZero() {
		t.Error("a node without taints")
	}
	node.Spec.Taints = []v1.Taint{{Key: DisruptedTaint, Effect: v1.TaintEffectNoExecute},
		{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}}
	if at := FirstAction(node, added); !at.IsZero() {
		t.Errorf("another effect is the first action at %v", at)
	}
	node.Spec.Taints = []v1.Taint{{Key: DisruptedTaint, Effect: v1.TaintEffectNoSchedule},
		{Key: v1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: v1.TaintEffectNoExecute}, {Key: "other", Value: OutOfServiceValue}}
	if at := FirstAction(node, added); !at.Equal(added) {
		t.Errorf("a taint without a time is of %v", at)
	}
	if ours, others := OutOfService(node); ours || !others {
		t.Errorf("an administrator's taint: %v, %v", ours, others)
	}
	node.Spec.Taints[0].TimeAdded = &metav1.Time{Time: added.Add(-time.Hour)}
	node.Spec.Taints[1].Value = OutOfServiceValue
	if at := FirstAction(node, added); !at.Equal(added.Add(-time.Hour)) {
		t.Errorf("the first action was at %v", at)
	}
	if ours, others := OutOfService(node); !ours || others {
		t.Errorf("our taint: %v, %v", ours, others)
	}
	node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: v1.TaintNodeOutOfService, Effect: v1.TaintEffectNoSchedule},
		v1.Taint{Key: v1.TaintNodeOutOfService, Value: OutOfServiceValue, Effect: v1.TaintEffectNoSchedule},
		v1.Taint{Key: v1.TaintNodeOutOfService, Value: "later", Effect: v1.TaintEffectPreferNoSchedule})
	if ours, others := OutOfService(node); !ours || !others {
		t.Errorf("both taints: %v, %v", ours, others)
	}
}

func TestProtected(t *testing.T) {
	for _, tc := range []struct {
		finalizers []string
		want       bool
	}{{nil, false}, {[]string{"other"}, false}, {[]string{"other", Finalizer}, true}} {
		if got := Protected(&metav1.ObjectMeta{Finalizers: tc.finalizers}); got != tc.want {
			t.Errorf("finalizers %v: %v", tc.finalizers, got)
		}
	}
}
