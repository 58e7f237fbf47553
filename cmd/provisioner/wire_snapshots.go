package main

import (
	"errors"
	"fmt"
	"time"

	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/provisioner/snapshots"
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
	whole, err := w.snapshotClient()
	if err != nil {
		return err
	}
	w.snapshots, err = snapshots.New(snapshots.Config{
		Client: w.clients.Objects, Metadata: client, REST: whole.SnapshotV1().RESTClient(), Recorder: w.recorder,
		Claims:   w.factory.Core().V1().PersistentVolumeClaims().Informer(),
		Interval: w.options.snapshots.interval,
	})
	if err != nil {
		return err
	}
	w.runOnTerm(w.snapshots.Watch, w.snapshots.Run)
	return nil
}

// snapshotClient reads and updates whole snapshots; custom resources know nothing but
// JSON.
func (w *wiring) snapshotClient() (snapshotclient.Interface, error) {
	config := rest.CopyConfig(w.clients.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := snapshotclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server for snapshots: %w", err)
	}
	return client, nil
}
