package termination

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/deadline"
)

// Drifted reports whether a NodeClaim has the condition Drifted. A condition of another type is none.
func Drifted(claim *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
	for _, one := range conditions {
		fields, _ := one.(map[string]any)
		if fields["type"] == "Drifted" && fields["status"] == string(metav1.ConditionTrue) {
			return true
		}
	}
	return false
}

// Expires returns when a NodeClaim expires, the zero time for never.
func Expires(claim *unstructured.Unstructured) (time.Time, error) {
	text, _, _ := unstructured.NestedString(claim.Object, "spec", "expireAfter") // a field of another type is none
	if text == "" {
		return time.Time{}, nil
	}
	age, err := deadline.ParsePeriod(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("spec.expireAfter: %w", err)
	}
	if length, limited := age.Length(); limited {
		return claim.GetCreationTimestamp().Add(length), nil
	}
	return time.Time{}, nil
}

// ReadySince returns since when the Node is ready, the zero time if it is not. A time that is to come is not believed: a
// kubelet may write any time.
func ReadySince(node *v1.Node, now time.Time) time.Time {
	for _, c := range node.Status.Conditions {
		if at := c.LastTransitionTime.Time; c.Type == v1.NodeReady && c.Status == v1.ConditionTrue && !at.After(now) {
			return at
		}
	}
	return time.Time{}
}
