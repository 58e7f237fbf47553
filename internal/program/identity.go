package program

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// tokenFile is where a pod's service account token is mounted.
const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// identity returns the holder identity for a lease: the pod's name and controller.IdentitySuffix, so
// that a restarted container finds its own identity in the lease and leads at once. The
// name comes from the token, because pods with hostNetwork share the host name. Without a
// token, the identity is the host name, a UUID and controller.IdentitySuffix.
func identity(tokenFile string) (string, error) {
	if token, err := os.ReadFile(tokenFile); err == nil {
		if pod := podName(string(token)); pod != "" {
			return pod + controller.IdentitySuffix, nil
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read host name for the leader lease: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()) + controller.IdentitySuffix, nil
}

// podName returns the name of the pod that the token is bound to, "" if there is none. The
// token is not verified: the name is no credential.
func podName(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Kubernetes struct {
			Pod struct{ Name string }
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.Pod.Name
}

// Identity returns the holder identity of this process for Leases other than the leader
// lease.
func Identity() (string, error) { return identity(tokenFile) }
