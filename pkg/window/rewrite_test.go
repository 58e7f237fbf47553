package window

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// #53
func TestRespelledWindowMeansTheSame(t *testing.T) {
	const respelled = "2026-01-02T03:04:01+00:00/2026-01-02T03:04:30+00:00"
	served := object(at(1), window(1, 30).String())
	*served.DeletionGracePeriodSeconds = 20
	for name, tc := range map[string]struct {
		object *metav1.ObjectMeta
		want   string
	}{
		"in the field":             {served, ""},
		"in its grace period":      {object(at(1), window(1, 30).String()), respelled},
		"rewritten before":         {object(at(1), respelled), respelled},
		"in another zone":          {object(at(1), "2026-01-02T04:04:01+01:00/2026-01-02T04:04:30+01:00"), respelled},
		"forced":                   {object(at(1), window(1, 1).String()), ""},
		"plain":                    {object(at(1), ""), ""},
		"inert":                    {object(at(1), "2025-01-02T03:04:01Z/2025-01-02T03:04:30Z"), ""},
		"malformed":                {object(at(1), "soon"), ""},
		"not deleted":              {object(time.Time{}, window(1, 30).String()), ""},
		"ended before the request": {object(at(40), window(1, 30).String()), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := Respelled(tc.object)
			if found != (tc.want != "") || got != tc.want {
				t.Fatalf("Respelled = %q, %t, want %q", got, found, tc.want)
			}
			if !found {
				return
			}
			before := deadline.Of(tc.object)
			tc.object.Annotations[deadline.Annotation] = got
			if after := deadline.Of(tc.object); after.Kind() != before.Kind() ||
				!after.Deadline(0).Equal(before.Deadline(0)) || !after.Requested().Equal(before.Requested()) {
				t.Errorf("%+v, want %+v", after, before)
			}
			if again, _ := Respelled(tc.object); again != got {
				t.Errorf("rewritten again as %q", again)
			}
		})
	}
}

func TestGroupsOfDefinitionsAreNotBuiltIn(t *testing.T) {
	for group, want := range map[string]bool{
		"": true, "apps": true, "storage.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
		"snapshot.storage.k8s.io": false, "gateway.networking.k8s.io": false, "example.com": false,
		strings.Repeat("x", 300): false,
	} {
		if got := IsBuiltIn(group); got != want {
			t.Errorf("IsBuiltIn(%q) = %t", group, got)
		}
	}
}
