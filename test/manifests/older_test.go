package manifests

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Only the admission policy needs a newer server; all other manifests are the same for every
// supported version.
func TestOlderServersAcceptAllButTheAdmissionPolicy(t *testing.T) {
	rendered := renderings(t)
	for _, version := range []string{"1.34", "1.35"} {
		t.Run(version, func(t *testing.T) {
			server := startServerIn(t, sandbox.Binaries{Dir: filepath.Join(binaries().Dir, "kube-"+version)})
			refused := 0
			for name, objects := range rendered {
				for _, object := range objects {
					server.prepareNamespace(t, object)
				}
				for _, object := range objects {
					warnings, err := server.dryRun(t.Context(), object)
					if strings.HasPrefix(object.GetKind(), "MutatingAdmissionPolicy") && meta.IsNoMatchError(err) {
						refused++
						continue
					}
					if err != nil || len(warnings) > 0 {
						t.Errorf("%s, %s: %v, warnings %q", name, nameOf(object), err, warnings)
					}
				}
			}
			if refused == 0 {
				t.Error("no rendering has the admission policy, so that nothing is refused")
			}
		})
	}
}
