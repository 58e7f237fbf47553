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

// snapshotOptions are the flags of the protection of snapshots.
type snapshotOptions struct {
	interval time.Duration
}

func (o *snapshotOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.interval, "snapshot-orphan-sweep-interval", o.interval, "time between two sweeps that remove the finalizer of snapshots no volume is restored from any more; 0 for no sweep")
}

func (o *snapshotOptions) check() error {
	if o.interval < 0 {
		return errors.New("--snapshot-orphan-sweep-interval must not be negative")
	}
	return nil
}

// wireSnapshots creates the controller that protects snapshots, if the driver has snapshots.
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
	elsewhere := w.servedElsewhere
	if w.options.snapshots.interval == 0 { // no sweep follows
		elsewhere = nil
	}
	w.snapshots, err = snapshots.New(snapshots.Config{
		Client: w.clients.Objects, Metadata: client, REST: whole.SnapshotV1().RESTClient(), Recorder: w.recorder,
		Claims:   w.factory.Core().V1().PersistentVolumeClaims().Informer(),
		Interval: w.options.snapshots.interval,
		Waiting:  w.tracked.Waiting, Serves: w.servesClaim, Elsewhere: elsewhere,
	})
	if err != nil {
		return err
	}
	w.runOnTerm(w.snapshots.Watch, w.snapshots.Run)
	return nil
}

// snapshotClient returns the client of VolumeSnapshots. Custom resources support JSON only.
func (w *wiring) snapshotClient() (snapshotclient.Interface, error) {
	config := rest.CopyConfig(w.clients.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := snapshotclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server for snapshots: %w", err)
	}
	return client, nil
}
