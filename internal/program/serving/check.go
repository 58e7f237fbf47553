package serving

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/cache"
)

// Checks say how the process is. A check that fails is named in the answer to
// everybody; why it fails is told only to those who may read the path of the check.
type Checks struct {
	// Live are the checks of /healthz and /livez, Ready those of /readyz.
	Live, Ready []healthz.HealthChecker
}

// errFilling is why a program is not ready at first.
var errFilling = errors.New("the cache is not filled yet")

// InformerSync returns a check for each cache, which fails until it is filled and
// carries its name. All of them form the group informer-sync.
func InformerSync(caches map[string]cache.InformerSynced) []healthz.HealthChecker {
	checks := make([]healthz.HealthChecker, 0, len(caches))
	for _, name := range slices.Sorted(maps.Keys(caches)) {
		checks = append(checks, healthz.NamedGroupedCheck("informer-sync-"+name, "informer-sync", func(*http.Request) error {
			if !caches[name]() {
				return errFilling
			}
			return nil
		}))
	}
	return checks
}
