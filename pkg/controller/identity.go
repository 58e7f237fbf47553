package controller

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// IdentitySuffix ends the holder identity of Exeunt's programs in Leases. Replacing one of
// them by upstream's program in the same pod changes leaseTransitions of the Lease.
const IdentitySuffix = "_exeunt"

const (
	// tokenFile is where a pod's service account token is mounted.
	tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	// podUIDVariable is the environment variable with the pod's UID, for pods without a token.
	podUIDVariable = "POD_UID"
)

// Identity returns the holder identity of this process in Leases: name and UID of the pod, and
// [IdentitySuffix]. A restarted container finds its own identity in the lease and leads
// at once. A pod that is created again under its name, as by a StatefulSet, has another
// identity and waits, because the old pod may still run. Name and UID come from the token, because pods
// with hostNetwork share the host name. Without a token the name is the host name, and the UID that of
// the environment or a random one.
func Identity() (string, error) { return identity(tokenFile) }

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
	return pod.Name + "_" + uid + IdentitySuffix, nil
}

// pod is the pod that a service account token is bound to, node the node of the pod.
type (
	pod  struct{ Name, UID string }
	node struct{ Name string }
)

// boundPod returns the pod that the token in the file is bound to, or no name and no UID.
func boundPod(tokenFile string) pod {
	pod, _ := bound(tokenFile)
	return pod
}

// bound returns the pod that the token in the file is bound to, and its node. The token is not
// verified: names and UID are no credentials.
func bound(tokenFile string) (pod, node) {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return pod{}, node{}
	}
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 {
		return pod{}, node{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return pod{}, node{}
	}
	var claims struct {
		Kubernetes struct {
			Pod  pod
			Node node
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return pod{}, node{}
	}
	return claims.Kubernetes.Pod, claims.Kubernetes.Node
}

const (
	// nodeVariable is the environment variable with the name of the pod's node.
	nodeVariable = "NODE_NAME"
	// serviceVariable is set in each pod.
	serviceVariable = "KUBERNETES_SERVICE_HOST"
)

// NodeName returns the node on which this process runs, "" if it is unknown: that of the environment, else that
// of the service account token. Outside of a pod it is the host name, which kubelets use as node name; the
// host name of a pod is its own.
func NodeName() string { return nodeName(tokenFile) }

func nodeName(tokenFile string) string {
	_, node := bound(tokenFile)
	name := cmp.Or(os.Getenv(nodeVariable), node.Name)
	if name == "" && os.Getenv(serviceVariable) == "" {
		name, _ = os.Hostname()
	}
	return strings.ToLower(name)
}
