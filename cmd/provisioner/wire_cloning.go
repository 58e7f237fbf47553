package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/cloning"
)

// cloningOptions are the flags of the protection of cloned claims.
type cloningOptions struct {
	workers uint
}

func (o *cloningOptions) addFlags(flags *pflag.FlagSet) {
	flags.UintVar(&o.workers, "cloning-protection-threads", o.workers, "number of workers that remove the cloning-protection finalizer")
}

func (o *cloningOptions) check() error {
	if o.workers < 1 {
		return errors.New("--cloning-protection-threads must be at least 1: no other program removes the cloning-protection finalizer")
	}
	return nil
}

// wireCloning creates the controller that protects cloned claims, if the driver can clone.
func (w *wiring) wireCloning() error {
	if !w.driver.Clones() {
		return nil
	}
	var err error
	if w.clones, err = cloning.New(w.clients.Objects, w.factory.Core().V1().PersistentVolumeClaims().Informer(), controller.NewReporter(w.recorder)); err != nil {
		return err
	}
	w.clones.TrackWaiting(w.tracked.Waiting, w.servesClaim)
	w.runOnTerm(w.clones.Watch, func(ctx context.Context) { w.clones.Run(ctx, int(w.options.cloning.workers)) })
	return nil
}
