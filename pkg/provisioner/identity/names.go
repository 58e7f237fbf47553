package identity

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// EventSource returns the component in events of claims and volumes. As upstream's, the
// component begins with the driver's name and is unique for each process.
func EventSource(driver, host string) string {
	return driver + "_" + host + "_" + string(uuid.NewUUID())
}

// LeaseEventSource returns the component in events of the leader lease.
func LeaseEventSource(driver, host string) string {
	return strings.ReplaceAll(driver, "/", "-") + "/" + host
}

// notInLeaseNames matches the characters that upstream replaces in lease names.
var notInLeaseNames = regexp.MustCompile("[^a-zA-Z0-9-]")

// LeaseName returns the name of the leader lease. Upstream's sidecar derives the same
// name, so that one replica of either program leads. Upstream's names with capital letters are
// refused by the API server, so that none of its replicas leads; here they are small letters.
func LeaseName(driver string) string {
	name := notInLeaseNames.ReplaceAllString(driver, "-")
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return strings.ToLower(name)
}

// Creator returns the volume attribute that names the creating process: start time, a
// random number, the driver, and with --node-deployment the node.
func Creator(driver, node string) string {
	name := fmt.Sprintf("%d-%d-%s", time.Now().UnixMilli(), rand.IntN(10000), driver)
	if node != "" {
		name += "-" + node
	}
	return name
}
