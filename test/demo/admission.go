package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// drivers lists the mock driver for the admission policy.
const drivers = `apiVersion: v1
kind: ConfigMap
metadata:
  name: ` + deploy.Drivers + `
  namespace: ` + deploy.Namespace + `
data:
  ` + csimock.DefaultName + `: ""
`

// ServesAdmission reports whether the API server serves the kind of the admission policy.
func (c *Cluster) ServesAdmission() (bool, error) { return servesAdmission(c.Client().Discovery()) }

func servesAdmission(server discovery.ServerResourcesInterface) (bool, error) {
	const version, kind = "admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"
	served, err := server.ServerResourcesForGroupVersion(version)
	if err != nil {
		return false, fmt.Errorf("discover resources of %s: %w", version, err)
	}
	return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }), nil
}

// ApplyAdmission creates the admission policy of deploy/admission, for the mock driver. The API
// server enforces the policy a moment later.
func (c *Cluster) ApplyAdmission(ctx context.Context) error {
	if err := sandbox.Apply(ctx, c.sandbox.Plane.RESTConfig(), deploy.Admission); err != nil {
		return err
	}
	return sandbox.ApplyYAML(ctx, c.sandbox.Plane.RESTConfig(), []byte(drivers))
}

// EnforceAdmission creates the admission policy and waits until it is in force. No controller
// may run meanwhile: it would act on the volume that the policy is probed with.
func (c *Cluster) EnforceAdmission(ctx context.Context) error {
	return c.config.Progress.Do(ctx, "applying the admission policy", func(ctx context.Context) error {
		if err := c.ApplyAdmission(ctx); err != nil {
			return err
		}
		return awaitAdmission(ctx, c.Client().CoreV1().PersistentVolumes(), true)
	})
}

// WithdrawAdmission deletes the admission policy and waits until it is no longer in force. No
// controller may run meanwhile.
func (c *Cluster) WithdrawAdmission(ctx context.Context) error {
	return c.config.Progress.Do(ctx, "removing the admission policy", func(ctx context.Context) error {
		policies := c.Client().AdmissionregistrationV1()
		if err := policies.MutatingAdmissionPolicyBindings().Delete(ctx, deploy.Policy, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete binding of the admission policy: %w", err)
		}
		if err := policies.MutatingAdmissionPolicies().Delete(ctx, deploy.Policy, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete admission policy: %w", err)
		}
		return awaitAdmission(ctx, c.Client().CoreV1().PersistentVolumes(), false)
	})
}

const (
	// probeName is the volume that the admission policy is probed with.
	probeName = "admission-probe"
	// probeLimit bounds the wait for the admission policy, probePeriod is the time between probes.
	probeLimit, probePeriod = time.Minute, 50 * time.Millisecond
	// resetProbe and exposeProbe are the writes of a probe: the policy acts on the second one.
	resetProbe  = `{"metadata":{"finalizers":null},"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`
	exposeProbe = `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`
)

// awaitAdmission waits until the admission policy adds the finalizer to a volume whose reclaim
// policy becomes Delete, or until it adds none.
func awaitAdmission(ctx context.Context, volumes typedcorev1.PersistentVolumeInterface, enforced bool) error {
	late := fmt.Errorf("the admission policy is not as wanted (in force: %t) within %s", enforced, probeLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, probeLimit, late)
	defer cancel()
	if err := createProbe(ctx, volumes); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, probePeriod, true, func(ctx context.Context) (bool, error) {
		if _, err := patchProbe(ctx, volumes, resetProbe); err != nil {
			return false, err
		}
		exposed, err := patchProbe(ctx, volumes, exposeProbe)
		return err == nil && finalizer.Has(exposed.Finalizers, finalizer.External) == enforced, err
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	return deleteProbe(ctx, volumes)
}

// createProbe creates a volume in phase Bound that no program manages.
func createProbe(ctx context.Context, volumes typedcorev1.PersistentVolumeInterface) error {
	probe, err := volumes.Create(ctx, &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: probeName},
		Spec: v1.PersistentVolumeSpec{
			AccessModes:                   []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Capacity:                      v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")},
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName, VolumeHandle: probeName}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create probe of the admission policy: %w", err)
	}
	probe.Status.Phase = v1.VolumeBound
	if _, err := volumes.UpdateStatus(ctx, probe, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set phase of the probe: %w", err)
	}
	return nil
}

// patchProbe writes the probe and returns it as the API server stored it.
func patchProbe(ctx context.Context, volumes typedcorev1.PersistentVolumeInterface,
	body string) (*v1.PersistentVolume, error) {
	probe, err := volumes.Patch(ctx, probeName, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("probe the admission policy: %w", err)
	}
	return probe, nil
}

// deleteProbe removes the probe with its finalizers.
func deleteProbe(ctx context.Context, volumes typedcorev1.PersistentVolumeInterface) error {
	if _, err := patchProbe(ctx, volumes, resetProbe); err != nil {
		return err
	}
	if err := volumes.Delete(ctx, probeName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete probe of the admission policy: %w", err)
	}
	return nil
}
