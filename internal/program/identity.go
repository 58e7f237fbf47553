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

// identity is what the holder of a lease is called: the name of the pod, so that a
// container that was killed finds its own name in the lease and goes on at once. The
// name is read from the token, for two pods on the network of one host share their
// host name. Without such a token it is the host name and something random.
func identity(tokenFile string) (string, error) {
	if token, err := os.ReadFile(tokenFile); err == nil {
		if pod := podOf(string(token)); pod != "" {
			return pod, nil
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read host name for the leader lease: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
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
