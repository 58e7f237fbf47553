package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// eventSource is the component that events of claims and volumes name. As upstream's, it
// is unique for each process and begins with the driver's name.
func eventSource(driver, host string) string {
	return driver + "_" + host + "_" + string(uuid.NewUUID())
}

// leaseEventSource is the component that events of the leader lease name, as upstream's.
func leaseEventSource(driver, host string) string {
	return strings.ReplaceAll(driver, "/", "-") + "/" + host
}
