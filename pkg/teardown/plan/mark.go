package plan

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// versions are the API versions of the kinds of targets.
var versions = map[string]string{"PersistentVolume": "v1", "PersistentVolumeClaim": "v1", "Namespace": "v1", "Service": "v1",
	"Ingress": "networking.k8s.io/v1", "Gateway": gatewayGroup + "/v1", "VolumeSnapshot": snapshotGroup + "/v1"}

// Mark sets the label that keeps the targets: what a person wants to keep is kept before anything is permitted.
func Mark(ctx context.Context, reader *cluster.Reader, targets []Target) error {
	for _, target := range targets {
		if err := mark(ctx, reader, target); err != nil {
			return fmt.Errorf("keep %s: %w", target, err)
		}
	}
	return nil
}

func mark(ctx context.Context, reader *cluster.Reader, target Target) error {
	ref, known := reader.Find(versions[target.Kind], target.Kind, target.Namespace, target.Name)
	if !known {
		return errors.New("the kind is not served")
	}
	client := reader.Dynamic().Resource(ref.Resource).Namespace(target.Namespace)
	get := func(ctx context.Context, name string, o metav1.GetOptions) (*unstructured.Unstructured, error) {
		return client.Get(ctx, name, o)
	}
	live, exists, err := answer.Get(ctx, target.Name, get)
	switch {
	case err != nil:
		return err
	case !exists:
		return errors.New("it is gone")
	}
	labels := live.GetLabels()
	if _, has := labels[inventory.PreserveLabel]; has {
		return nil
	}
	edit := patch.ForVersion(live)
	if labels == nil {
		edit.Set("/metadata/labels", map[string]string{inventory.PreserveLabel: "true"})
	} else {
		edit.Set("/metadata/labels/"+patch.Escape(inventory.PreserveLabel), "true")
	}
	body, err := edit.Bytes()
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, target.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	return err
}
