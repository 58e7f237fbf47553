package serving

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/cache"
)

// Checks are the health checks. Everybody may read the names of failed checks; the reason
// of a failure is served only to users who may read the path of the check.
type Checks struct {
	// Live are the checks of /healthz and /livez, Ready those of /readyz.
	Live, Ready []healthz.HealthChecker
}

// errNotSynced is why a program is not ready at first.
var errNotSynced = errors.New("the cache has not synced yet")

// InformerSync returns a check for each cache, which fails until the cache has synced. The
// checks form the group informer-sync.
func InformerSync(caches map[string]cache.InformerSynced) []healthz.HealthChecker {
	checks := make([]healthz.HealthChecker, 0, len(caches))
	for _, name := range slices.Sorted(maps.Keys(caches)) {
		checks = append(checks, healthz.NamedGroupedCheck("informer-sync-"+name, "informer-sync", func(*http.Request) error {
			if !caches[name]() {
				return errNotSynced
			}
			return nil
		}))
	}
	return checks
}
