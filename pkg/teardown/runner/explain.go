package runner

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// explanations are why objects remain, as read from time to time.
type explanations struct {
	// participants are the finalizers of participants with evidence that they will not go.
	participants map[string]bool
}

// explained returns the first items as the status names them.
func (s *session) explained(items []teardown.Item, _ time.Time) []alive.Remaining {
	var remaining []alive.Remaining
	for _, item := range items[:min(alive.MaxRemaining, len(items))] {
		one := alive.Remaining{ExternalID: cut(item.ExternalID), Object: alive.Object{Kind: item.Object.Kind,
			Namespace: item.Object.Namespace, Name: item.Object.Name, UID: types.UID(item.Object.UID)}, Reason: item.Reason}
		if !item.Created.IsZero() {
			since := metav1.NewTime(item.Created.Truncate(time.Second))
			one.Since = &since
		}
		remaining = append(remaining, one)
	}
	return remaining
}
