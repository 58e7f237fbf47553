package garbagecollector

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

func TestDebuggingPageNamesUnreadKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		unread []*graph.Kind
		want   string
	}{
		"one":  {[]*graph.Kind{configMaps}, `"unreadKinds":["configmaps"]`},
		"none": {nil, `"unreadKinds":[]`},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Config{Clock: clocktesting.NewFakeClock(metav1.Now().Time)})
			c.observe(terminating(configMap("owner", "1"), metav1.FinalizerOrphanDependents))
			c.barriers.unread = tc.unread
			answer := httptest.NewRecorder()
			c.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, DebugPath+"?format=json&uid=owner", http.NoBody))
			if page := answer.Body.String(); !strings.Contains(page, tc.want) || !strings.Contains(page, `"uid":"owner"`) {
				t.Error(page)
			}
		})
	}
}
