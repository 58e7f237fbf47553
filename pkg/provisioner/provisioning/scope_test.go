package provisioning

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
)

// cachesOf returns the informers of a factory, without the arrivals of claims.
func cachesOf(factory informers.SharedInformerFactory) Caches {
	core := factory.Core().V1()
	return Caches{
		Claims: core.PersistentVolumeClaims().Informer(), Volumes: core.PersistentVolumes().Informer(),
		Classes: factory.Storage().V1().StorageClasses().Informer(),
	}
}

// testScope is a Scope for tests. The zero value of node stands for all nodes, that of reaches for every volume.
type testScope struct {
	provisioners []string
	node         string
	reaches      func(*v1.PersistentVolume) bool
}

func serves(provisioners ...string) testScope { return testScope{provisioners: provisioners} }

func (s testScope) Serves(provisioner string) bool {
	return slices.Contains(s.provisioners, provisioner)
}

func (s testScope) Node() string { return s.node }

func (s testScope) Reaches(volume *v1.PersistentVolume) bool {
	return s.reaches == nil || s.reaches(volume)
}

func (testScope) VolumeName(claim *v1.PersistentVolumeClaim) string {
	return "pvc-" + string(claim.UID)
}

// testNodes are Nodes for tests, without a cache if cached is nil.
type testNodes struct {
	read   func(ctx context.Context, name string) (*v1.Node, error)
	cached func(name string) *v1.Node
}

func (n testNodes) Read(ctx context.Context, name string) (*v1.Node, error) { return n.read(ctx, name) }

func (n testNodes) FromCache(name string) *v1.Node {
	if n.cached == nil {
		return nil
	}
	return n.cached(name)
}

// liveNodes are Nodes without a cache.
func liveNodes(read func(ctx context.Context, name string) (*v1.Node, error)) testNodes {
	return testNodes{read: read}
}
