package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// chosenNodes reads the nodes that were chosen for claims.
type chosenNodes struct {
	client kubernetes.Interface
	// topology is whether the driver has any. Without, it makes no difference which node
	// was chosen, nor whether that still exists.
	topology bool
	// own is the node that is served, "" for all, and labels is where its driver says
	// that it is.
	own    string
	labels map[string]string
	// watched are all nodes; nil where they are not watched.
	watched corelisters.NodeLister
}

// chosen are the nodes as this driver needs to know them.
func (w *wiring) chosen() chosenNodes {
	nodes := chosenNodes{client: w.clients.Objects, topology: w.driver.HasTopology(), own: w.options.node.name(), labels: w.topology}
	if nodes.topology && nodes.own == "" {
		nodes.watched = w.factory.Core().V1().Nodes().Lister()
	}
	return nodes
}

// read returns a node as it is now. Where that may only be watched, what was seen of it
// has to do.
func (n chosenNodes) read(ctx context.Context, name string) (*v1.Node, error) {
	switch {
	case !n.topology:
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	case name == n.own:
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: n.labels}}, nil
	}
	node, err := n.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) && n.watched != nil {
		return n.watched.Get(name)
	}
	return node, err
}

// seen returns the node as it was watched last, nil if it is not known or nodes are not
// watched.
func (n chosenNodes) seen(name string) *v1.Node {
	if n.watched == nil {
		return nil
	}
	node, err := n.watched.Get(name)
	if err != nil {
		return nil
	}
	return node
}
