package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/model/upstream"
)

// besideLoops runs our provisioner beside upstream's loops, as in a managed cluster.
func besideLoops(c Config) Config {
	c.Name += " beside kube-controller-manager"
	c.Programs = []Program{upstreamLoops(), provisioner()}
	return c
}

// besideSidecar runs our pv-controller beside upstream's provisioner.
func besideSidecar(c Config) Config {
	c.Name += " beside csi-provisioner"
	c.Programs = []Program{pvController(), upstreamProvisioner(upstream.Options{})}
	return c
}

// besideWorlds returns the worlds of one program of ours and one of upstream.
func besideWorlds() []Config {
	var all []Config
	for _, pair := range []func(Config) Config{besideLoops, besideSidecar} {
		for _, policy := range []v1.PersistentVolumeReclaimPolicy{v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRetain} {
			all = slices.Concat(all, worldsOf(pair(static(policy))), worldsOf(pair(dynamic(policy))))
		}
	}
	return all
}
