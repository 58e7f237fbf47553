package main

import (
	"errors"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// newLoopClients returns the clients of the reconcilers. Each has its own rate limit, if a
// limit is set.
func newLoopClients(clients *program.Clients) (pvcontroller.Clients, error) {
	binding, bindingErr := clients.For("binding")
	releasing, releasingErr := clients.For("releasing")
	reclaiming, reclaimingErr := clients.For("reclaiming")
	protection, protectionErr := clients.Partial("protection", pvcache.PodRules()) // it lists the pods of a namespace
	return pvcontroller.Clients{Binding: binding, Releasing: releasing, Reclaiming: reclaiming, Protection: protection}, errors.Join(bindingErr, releasingErr, reclaimingErr, protectionErr)
}
