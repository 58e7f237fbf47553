package program

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

const (
	// tokenFile is where a pod's service account token is mounted.
	tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	// podUIDVariable is the environment variable with the pod's UID, for pods without a token.
	podUIDVariable = "POD_UID"
)

// identity returns the holder identity for a lease: name and UID of the pod, and
// controller.IdentitySuffix. A restarted container finds its own identity in the lease and leads
// at once. A pod that is created again under its name, as by a StatefulSet, has another
// identity and waits, because the old pod may still run. Name and UID come from the token, because pods
// with hostNetwork share the host name. Without a token the name is the host name, and the UID that of
// the environment or a random one.
func identity(tokenFile string) (string, error) {
	pod := boundPod(tokenFile)
	if pod.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("read host name for the leader lease: %w", err)
		}
		pod.Name = host
	}
	uid := cmp.Or(pod.UID, os.Getenv(podUIDVariable), string(uuid.NewUUID()))
	return pod.Name + "_" + uid + controller.IdentitySuffix, nil
}

// pod is the pod that a service account token is bound to.
type pod struct{ Name, UID string }

// boundPod returns the pod that the token in the file is bound to, or no name and no UID. The token is
// not verified: name and UID are no credentials.
func boundPod(tokenFile string) pod {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return pod{}
	}
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 {
		return pod{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return pod{}
	}
	var claims struct {
		Kubernetes struct{ Pod pod } `json:"kubernetes.io"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return pod{}
	}
	return claims.Kubernetes.Pod
}

// Identity returns the holder identity of this process for Leases other than the leader
// lease.
func Identity() (string, error) { return identity(tokenFile) }
