package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The resources of the controllers in examples.
var (
	VirtualMachines = schema.GroupVersionResource{Group: "example.exeunt.io", Version: "v1", Resource: "virtualmachines"}
	databases       = VirtualMachines.GroupVersion().WithResource("databases")
)

// StartExamples starts controllers of examples.
func (c *Cluster) StartExamples(ctx context.Context, names ...string) error {
	what := "starting " + strings.Join(names, " and ")
	return c.config.Progress.Do(ctx, what, func(ctx context.Context) error {
		for _, name := range names {
			if _, err := c.sandbox.StartExample(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Dynamic returns the administrator's client of all kinds.
func (c *Cluster) Dynamic() (dynamic.Interface, error) {
	client, err := dynamic.NewForConfig(c.sandbox.Plane.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("make dynamic client: %w", err)
	}
	return client, nil
}

// guestsEnd is how long the guests of the controllers may take to end by force.
const guestsEnd = 10 * time.Second

// StopExamples ends all guests by force, which outlive their controllers, and stops the controllers with the cluster.
func (c *Cluster) StopExamples() error {
	ctx, cancel := context.WithTimeout(context.Background(), guestsEnd)
	defer cancel()
	return errors.Join(c.endGuests(ctx), c.Stop())
}

func (c *Cluster) endGuests(ctx context.Context) error {
	client, err := c.Dynamic()
	if err != nil {
		return err
	}
	var errs []error
	for _, resource := range []schema.GroupVersionResource{VirtualMachines, databases} {
		var last error
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
			if last = err; err != nil { // the API server may answer again
				return false, nil
			}
			for _, object := range list.Items {
				zero := int64(0)
				_ = client.Resource(resource).Namespace(object.GetNamespace()).
					Delete(ctx, object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &zero}) // listed again if it is left
			}
			return len(list.Items) == 0, nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("end the guests of %s: %w", resource.Resource, cmp.Or(last, err)))
		}
	}
	return errors.Join(errs...)
}

// ExamplePrograms returns an error if a program of the examples is missing, or the path of kube-apiserver.
func ExamplePrograms(binaries sandbox.Binaries, names ...string) (kubeAPIServer string, err error) {
	for _, name := range names {
		if _, err := binaries.GracefulPath(name); err != nil {
			return "", err
		}
	}
	return binaries.GracefulPath(sandbox.KubeAPIServer)
}
