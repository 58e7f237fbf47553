package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// openProxies puts a proxy between each process and the API server. Proxies of before an
// etcd restore remember versions that do not exist any more, so they are replaced.
func (w *world) openProxies(ctx context.Context) error {
	if err := w.closeProxies(); err != nil {
		return err
	}
	for program, replicas := range w.replicas {
		for _, r := range replicas {
			if err := w.openProxy(ctx, r, w.account(Program(program))); err != nil {
				return err
			}
		}
	}
	return nil
}

// account returns the user of a program.
func (w *world) account(program Program) sandbox.Identity {
	switch {
	case program == PVController && w.config.Upstream:
		return sandbox.User("system:kube-controller-manager")
	case program == PVController:
		return sandbox.PVControllerAccount
	case program == Collector:
		return sandbox.GarbageCollectorAccount
	case w.config.Upstream:
		return sandbox.UpstreamSidecarUser
	}
	return sandbox.ProvisionerAccount
}

// openProxy opens the proxy of one process. The second replica meets an API server without
// watch lists, whose lists can be stale.
func (w *world) openProxy(ctx context.Context, r *replica, account sandbox.Identity) error {
	file, err := w.plane.Kubeconfig(ctx, account)
	if err != nil {
		return err
	}
	config, err := sandbox.LoadConfig(file)
	if err != nil {
		return err
	}
	late := w.newDelay()
	proxy, err := faultproxy.New(faultproxy.Config{
		Program: r.name(), Upstream: config, Seed: w.config.Seed, Log: w.noteFault, NoWatchList: r.number == 1,
		LeaderLeases: []string{"pv-controller", "garbage-collector", "kube-controller-manager",
			identity.LeaseName(w.disks.driver.DriverName)},
		Choose: denyFirstWrites, Change: late.answered,
		Wrap: func(forward http.Handler) http.Handler { return w.storms.of(r.name(), late.wrap(forward)) },
	})
	if err == nil {
		err = proxy.Start()
	}
	r.kubeconfig = filepath.Join(w.dir, r.name()+".proxy.kubeconfig")
	if err == nil {
		err = proxy.Kubeconfig(r.kubeconfig)
	}
	if err != nil {
		return fmt.Errorf("open proxy of %s: %w", r.name(), err)
	}
	w.proxies = append(w.proxies, proxy)
	return nil
}

// denied begins the names of objects whose first writes a webhook denies, with the answer that the object does not
// exist.
const denied = "denied-"

// deniedWrites is how often each write of such an object is denied.
const deniedWrites = 2

// denyFirstWrites denies the first writes of some objects, and leaves other requests the fault that was drawn.
func denyFirstWrites(fault faultproxy.Fault) faultproxy.Kind {
	writes := fault.Verb == "patch" || fault.Verb == "update" || fault.Verb == "delete"
	if writes && strings.HasPrefix(fault.Name, denied) && fault.Ordinal < deniedWrites {
		return faultproxy.DeniedNotFound
	}
	return fault.Kind
}

// noteFault counts a fault of a proxy.
func (w *world) noteFault(fault faultproxy.Fault) {
	w.counts.add(topicProxy, string(fault.Kind), 1)
	if fault.Kind == faultproxy.StaleList {
		w.counts.add(topicStale, fault.Resource, 1)
	}
}

// setRates changes the rates of all proxies.
func (w *world) setRates(rates faultproxy.Rates) {
	w.rates = rates
	for _, proxy := range w.proxies {
		proxy.SetRates(rates)
	}
}

// closeProxies ends all proxies.
func (w *world) closeProxies() error {
	var errs []error
	for _, proxy := range w.proxies {
		errs = append(errs, proxy.Close())
	}
	w.proxies, w.delays = nil, nil
	return errors.Join(errs...)
}
