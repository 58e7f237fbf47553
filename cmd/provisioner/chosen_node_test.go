package main

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func placed(name, zone string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
}

// A read of the chosen node costs a request for each claim, and a node that is gone
// gives the claim back to the scheduler: both only where the node makes a difference.
func TestAChosenNodeIsReadWhereItMakesADifference(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1.Resource("nodes"), "there", errors.New("no right"))
	for name, tc := range map[string]struct {
		nodes  chosenNodes
		live   []runtime.Object
		denied error
		zone   string
		wrong  func(error) bool
		reads  int
	}{
		"as it is now":                                  {chosenNodes{topology: true}, []runtime.Object{placed("there", "b")}, nil, "b", nil, 1},
		"one that is gone is gone":                      {chosenNodes{topology: true}, nil, nil, "", apierrors.IsNotFound, 1},
		"not by a driver without topology":              {chosenNodes{}, nil, nil, "", nil, 0},
		"not if it is the one that is served":           {chosenNodes{topology: true, own: "there", labels: map[string]string{"zone": "mine"}}, nil, nil, "mine", nil, 0},
		"as it was seen, without the right to read it":  {chosenNodes{topology: true}, nil, forbidden, "seen", nil, 1},
		"without any right, the API server's word goes": {chosenNodes{topology: true, own: "other"}, nil, forbidden, "", apierrors.IsForbidden, 1},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(tc.live...)
			if tc.denied != nil {
				client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.denied })
			}
			tc.nodes.client = client
			if tc.nodes.own == "" {
				informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
				if err := informer.Informer().GetStore().Add(placed("there", "seen")); err != nil {
					t.Fatal(err)
				}
				tc.nodes.watched = informer.Lister()
			}
			node, err := tc.nodes.read(t.Context(), "there")
			switch {
			case tc.wrong != nil && !tc.wrong(err):
				t.Errorf("error %v", err)
			case tc.wrong == nil && err != nil:
				t.Fatal(err)
			case tc.wrong == nil && (node.Name != "there" || node.Labels["zone"] != tc.zone):
				t.Errorf("node %s in zone %q, want there in %q", node.Name, node.Labels["zone"], tc.zone)
			}
			if got := len(client.Actions()); got != tc.reads {
				t.Errorf("%d requests, want %d", got, tc.reads)
			}
		})
	}
}

func TestWatchedNodeIsKnownWithoutARequest(t *testing.T) {
	client := fake.NewClientset()
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
	if err := informer.Informer().GetStore().Add(placed("there", "seen")); err != nil {
		t.Fatal(err)
	}
	nodes := chosenNodes{client: client, topology: true, watched: informer.Lister()}
	if node := nodes.seen("there"); node == nil || node.Labels["zone"] != "seen" {
		t.Errorf("node = %v", node)
	}
	if nodes.seen("elsewhere") != nil || (chosenNodes{topology: true}).seen("there") != nil {
		t.Error("a node is known that was never watched")
	}
	if got := len(client.Actions()); got != 0 {
		t.Errorf("%d requests", got)
	}
}
