package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/metadata"

	"github.com/exeunt-io/exeunt/pkg/controller/snapshots"
)

// snapshotOptions say how snapshots that volumes are made from are let go.
type snapshotOptions struct {
	interval time.Duration
}

func (o *snapshotOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.interval, "snapshot-orphan-sweep-interval", o.interval, "time between two searches for snapshots that were left protected as the source of a volume; 0 searches never")
}

func (o *snapshotOptions) check() error {
	if o.interval < 0 {
		return errors.New("--snapshot-orphan-sweep-interval must not be negative")
	}
	return nil
}

// wireSnapshots makes the controller that protects snapshots. A driver that makes
// no snapshots needs none.
func (w *wiring) wireSnapshots() error {
	if !w.driver.Snapshots() {
		return nil
	}
	client, err := metadata.NewForConfig(w.clients.Config)
	if err != nil {
		return fmt.Errorf("connect to the API server for snapshots: %w", err)
	}
	w.snapshots, err = snapshots.New(snapshots.Config{
		Client: w.clients.Objects, Metadata: client,
		Claims:   w.factory.Core().V1().PersistentVolumeClaims().Informer(),
		Interval: w.options.snapshots.interval,
	})
	if err != nil {
		return err
	}
	w.work = append(w.work, w.snapshots.Run)
	return nil
}
