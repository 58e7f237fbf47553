package termination_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	. "github.com/exeunt-io/exeunt/pkg/termination"
)

func TestClaimIsDrifted(t *testing.T) {
	condition := func(kind, status any) any { return map[string]any{"type": kind, "status": status} }
	for name, tc := range map[string]struct {
		conditions any
		want       bool
	}{
		"none":                {nil, false},
		"true":                {[]any{condition("Ready", "True"), condition("Drifted", "True")}, true},
		"false":               {[]any{condition("Drifted", "False")}, false},
		"unknown":             {[]any{condition("Drifted", "Unknown")}, false},
		"another condition":   {[]any{condition("Ready", "True")}, false},
		"another type":        {[]any{"Drifted"}, false},
		"a status of no text": {[]any{condition("Drifted", true)}, false},
	} {
		claim := &unstructured.Unstructured{Object: map[string]any{}}
		if tc.conditions != nil {
			claim.Object["status"] = map[string]any{"conditions": tc.conditions}
		}
		if got := Drifted(claim); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNodeIsReadySince(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		kind   v1.NodeConditionType
		status v1.ConditionStatus
		at     time.Time
		want   time.Time
	}{
		"ready":             {v1.NodeReady, v1.ConditionTrue, now.Add(-time.Minute), now.Add(-time.Minute)},
		"ready now":         {v1.NodeReady, v1.ConditionTrue, now, now},
		"ready to come":     {v1.NodeReady, v1.ConditionTrue, now.Add(time.Second), time.Time{}},
		"not ready":         {v1.NodeReady, v1.ConditionUnknown, now.Add(-time.Minute), time.Time{}},
		"another condition": {v1.NodeDiskPressure, v1.ConditionTrue, now.Add(-time.Minute), time.Time{}},
	} {
		node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: tc.kind, Status: tc.status,
			LastTransitionTime: metav1.NewTime(tc.at)}}}}
		if got := ReadySince(node, now); !got.Equal(tc.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestClaimExpires(t *testing.T) {
	created := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		expireAfter any
		want        time.Time
		bad         bool
	}{
		"none":         {},
		"an hour":      {expireAfter: "1h", want: created.Add(time.Hour)},
		"never":        {expireAfter: "Never"},
		"no period":    {expireAfter: "1d", bad: true},
		"too long":     {expireAfter: "9999999h", bad: true},
		"another type": {expireAfter: int64(3)},
	} {
		claim := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		claim.SetCreationTimestamp(metav1.NewTime(created))
		if tc.expireAfter != nil {
			claim.Object["spec"].(map[string]any)["expireAfter"] = tc.expireAfter
		}
		if got, err := Expires(claim); !got.Equal(tc.want) || (err != nil) != tc.bad {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
