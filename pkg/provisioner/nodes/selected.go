package nodes

import (
	"context"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Selected reads the nodes that the scheduler selected for claims.
type Selected struct {
	Client kubernetes.Interface
	// HasTopology is false for a driver without topology: the selected node then makes
	// no difference, even if the node was deleted.
	HasTopology bool
	// Served is the name of the served node with --node-deployment, "" otherwise;
	// Topology is what the driver of the served node reports.
	Served   string
	Topology map[string]string
	// Cached lists the watched nodes; nil if nodes are not watched.
	Cached corelisters.NodeLister
}

// Read returns the current node.
func (s Selected) Read(ctx context.Context, name string) (*v1.Node, error) {
	switch {
	case !s.HasTopology:
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	case name == s.Served:
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s.Topology}}, nil
	}
	node, err := s.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) && s.Cached != nil { // upstream's role may watch nodes, not read them
		return s.Cached.Get(name)
	}
	return node, err
}

// FromCache returns the cached node, nil if the cache lacks the node or nodes are not
// watched.
func (s Selected) FromCache(name string) *v1.Node {
	if s.Cached == nil {
		return nil
	}
	node, err := s.Cached.Get(name)
	if err != nil {
		return nil
	}
	return node
}
