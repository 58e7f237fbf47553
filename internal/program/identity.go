package program

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// tokenFile is where a pod finds the token of its service account.
const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// marker ends the identity of every leader of ours. Upstream's sidecar in the same pod
// has another identity, so that replacing one by the other changes the lease's number
// of transitions.
const marker = "_exeunt"

// identity returns the holder identity for a lease: the name of the pod and a marker,
// so that a restarted container finds its own identity in the lease and leads at once.
// The name is read from the token, because two pods on the network of one host share
// their host name. Without such a token it is the host name, a UUID and the marker.
func identity(tokenFile string) (string, error) {
	if token, err := os.ReadFile(tokenFile); err == nil {
		if pod := podOf(string(token)); pod != "" {
			return pod + marker, nil
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read host name for the leader lease: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()) + marker, nil
}

// podOf returns the name of the pod that the token is bound to, "" if it is bound to
// none. Nothing rests on the token being genuine.
func podOf(token string) string {
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

// Identity returns the holder identity of this process for Leases that it writes
// beside the leader lease.
func Identity() (string, error) { return identity(tokenFile) }
