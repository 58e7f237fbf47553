package main

import (
	"errors"

	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/internal/program"
)

// budgets are the clients of the loops. Each has a limiter of its own where a limit
// is set, so that volumes whose deletion fails again and again hold up no claim.
type budgets struct {
	binding, releasing, reclaiming, protection kubernetes.Interface
}

func budgetsOf(clients *program.Clients) (budgets, error) {
	binding, bindingErr := clients.For("binding")
	releasing, releasingErr := clients.For("releasing")
	reclaiming, reclaimingErr := clients.For("reclaiming")
	protection, protectionErr := clients.For("protection")
	return budgets{binding, releasing, reclaiming, protection}, errors.Join(bindingErr, releasingErr, reclaimingErr, protectionErr)
}
