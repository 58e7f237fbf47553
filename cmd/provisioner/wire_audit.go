package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	storageaudit "github.com/exeunt-io/exeunt/pkg/audit"
	"github.com/exeunt-io/exeunt/pkg/provisioner/audit"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
)

// shortestAuditInterval keeps audits from being a load: each lists all volumes and pods.
const shortestAuditInterval = 10 * time.Minute

// auditOptions are the flags of audits.
type auditOptions struct {
	interval time.Duration
}

func (o *auditOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.interval, "audit-interval", o.interval, "time between two audits of the leader, which set the metric exeunt_orphaned_volumes and delete nothing; at least 10m, 0 for no audits")
}

func (o *auditOptions) check() error {
	if o.interval != 0 && o.interval < shortestAuditInterval {
		return errors.New("--audit-interval must be 0 or at least 10m")
	}
	return nil
}

// wireAudit creates the auditor, if audits are on and the driver can list its volumes.
func (w *wiring) wireAudit(ctx context.Context) error {
	switch {
	case w.options.audit.interval == 0:
		return nil
	case !w.driver.ListsVolumes():
		klog.FromContext(ctx).Info("No audits: the driver does not announce LIST_VOLUMES", "driver", w.driver.Name())
		return nil
	}
	cluster, err := storageaudit.NewCluster("of the provisioner", rest.AddUserAgent(rest.CopyConfig(w.clients.Config), "audit"))
	if err != nil {
		return err
	}
	cluster.JournalNamespace, err = identity.JournalNamespace(ctx, w.clients.Objects, w.options.election.enabled, w.options.election.namespace)
	if err != nil {
		return err
	}
	auditor := &audit.Auditor{Driver: w.driver, Cluster: cluster, Interval: w.options.audit.interval, Metrics: w.auditMetrics}
	w.work = append(w.work, auditor.Run)
	return nil
}
