package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// auditPolicy logs one line per finished request, with the response to each write of a
// volume or claim. The level has the request as well; no level has the response alone.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: RequestResponse
  omitManagedFields: true
  verbs: [create, update, patch, delete]
  resources:
  - group: ""
    resources: [persistentvolumes, persistentvolumes/status, persistentvolumeclaims, persistentvolumeclaims/status]
- level: Metadata
`

// writeAuditPolicy writes the policy and adds the flag that makes the API server use it.
func writeAuditPolicy(config *Config) error {
	file := filepath.Join(config.Dir, "audit-objects.yaml")
	if err := os.WriteFile(file, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	config.ExtraArgs = append(slices.Clone(config.ExtraArgs), "audit-policy-file="+file)
	return nil
}
