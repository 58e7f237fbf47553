package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/pkg/provisioner/cloning"
)

// cloningOptions say how claims that others are cloned from are let go.
type cloningOptions struct {
	workers uint
}

func (o *cloningOptions) addFlags(flags *pflag.FlagSet) {
	flags.UintVar(&o.workers, "cloning-protection-threads", o.workers, "claims, that others are cloned from, that are let go at once")
}

func (o *cloningOptions) check() error {
	if o.workers < 1 {
		return errors.New("--cloning-protection-threads must be at least 1: nobody else lets claims go that were cloned")
	}
	return nil
}

// wireCloning makes the controller that lets claims go which were cloned. A driver
// that clones nothing needs none.
func (w *wiring) wireCloning() error {
	if !w.driver.Clones() {
		return nil
	}
	var err error
	if w.clones, err = cloning.New(w.clients.Objects, w.factory.Core().V1().PersistentVolumeClaims().Informer()); err != nil {
		return err
	}
	w.runOnTerm(w.clones.Watch, func(ctx context.Context) { w.clones.Run(ctx, int(w.options.cloning.workers)) })
	return nil
}
