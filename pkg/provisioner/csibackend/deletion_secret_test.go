package csibackend

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// secretDriver remembers the secrets of its calls.
type secretDriver struct {
	called  bool
	secrets map[string]string
	err     error
}

func (d *secretDriver) Name() string { return "driver" }

func (d *secretDriver) DeleteVolume(_ context.Context, _ string, secrets map[string]string) error {
	d.called, d.secrets = true, secrets
	return d.err
}

var (
	deletionSecret = &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "key"},
		Data: map[string][]byte{"user": []byte("root")}}
	alive       = &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	terminating = &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "ns", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{"kubernetes"},
	}}
)

var deletionSecretCases = map[string]struct {
	objects   []runtime.Object
	unnamed   bool
	forbidden string // a resource that may not be read
	called    bool
	secrets   map[string]string
	sentence  []string // what the error says
}{
	"no secret":                           {unnamed: true, called: true},
	"a secret":                            {objects: []runtime.Object{alive, deletionSecret}, called: true, secrets: map[string]string{"user": "root"}},
	"a secret in a terminating namespace": {objects: []runtime.Object{terminating, deletionSecret}, called: true, secrets: map[string]string{"user": "root"}},
	"a missing secret":                    {objects: []runtime.Object{alive}, sentence: []string{"ns/key", "does not exist", "once the secret exists"}},
	"a missing secret, namespace unknown": {forbidden: "namespaces",
		sentence: []string{"ns/key", "does not exist", "once the secret exists", "may get namespaces"}},
	"a secret that may not be read": {forbidden: "secrets", objects: []runtime.Object{terminating}, sentence: []string{"ns/key", "forbidden"}},
	"a terminating namespace":       {objects: []runtime.Object{terminating}, called: true},
	"no namespace":                  {called: true},
}

// A webhook chooses what it answers to a write, so nothing is written to find out about a namespace.
func TestDeletionSecret(t *testing.T) {
	for name, tc := range deletionSecretCases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(tc.objects...)
			client.PrependReactor("get", tc.forbidden, func(action clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "it", nil)
			})
			volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume"}}
			if !tc.unnamed {
				volume.Annotations = map[string]string{provision.DeletionSecretName: "key", provision.DeletionSecretNamespace: "ns"}
			}
			driver := &secretDriver{}
			d := &Deleter{Client: client, Driver: driver}
			err := discard(t.Context(), d, volume)
			if driver.called != tc.called || !maps.Equal(driver.secrets, tc.secrets) {
				t.Errorf("DeleteVolume called %t with %d secrets, want %t with %d", driver.called, len(driver.secrets), tc.called,
					len(tc.secrets))
			}
			if (err == nil) != tc.called {
				t.Errorf("Discard = %v", err)
			}
			for _, action := range client.Actions() {
				if action.GetVerb() != "get" {
					t.Errorf("request %v", action)
				}
			}
			for _, part := range tc.sentence {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error lacks %q: %v", part, err)
				}
			}
		})
	}
}

// The cases are those of external-provisioner.
func TestIncompleteSecretReference(t *testing.T) {
	const name, namespace = provision.DeletionSecretName, provision.DeletionSecretNamespace
	for title, tc := range map[string]struct {
		annotations map[string]string
		ofClass     bool
		called      bool
	}{
		"no annotation":              {nil, true, true},
		"name without namespace":     {map[string]string{name: "other"}, true, true},
		"namespace without name":     {map[string]string{namespace: "ns"}, true, true},
		"empty name, no namespace":   {map[string]string{name: ""}, true, true},
		"empty name":                 {map[string]string{name: "", namespace: "ns"}, false, true},
		"empty namespace":            {map[string]string{name: "key", namespace: ""}, false, true},
		"both empty":                 {map[string]string{name: "", namespace: ""}, false, true},
		"secret that does not exist": {map[string]string{name: "other", namespace: "ns"}, false, false},
	} {
		t.Run(title, func(t *testing.T) {
			for _, readsClasses := range []bool{true, false} {
				driver := &secretDriver{}
				d := &Deleter{Client: fake.NewClientset(alive, deletionSecret), Driver: driver}
				if readsClasses {
					d.ClassSecret = func(context.Context, *v1.PersistentVolume) (*v1.SecretReference, error) {
						return &v1.SecretReference{Namespace: "ns", Name: "key"}, nil
					}
				}
				err := discard(t.Context(), d,
					&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume", Annotations: tc.annotations}})
				if driver.called != tc.called || (err == nil) != tc.called ||
					(driver.secrets["user"] == "root") != (tc.ofClass && readsClasses) {
					t.Errorf("classes are read: %v; called %v with %d secrets, error %v", readsClasses, driver.called,
						len(driver.secrets), err)
				}
			}
		})
	}
}

func TestFailureWithoutSecretSaysWhy(t *testing.T) {
	driver := &secretDriver{err: context.DeadlineExceeded}
	d := &Deleter{Client: fake.NewClientset(), Driver: driver}
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		Name: "volume", Annotations: map[string]string{provision.DeletionSecretName: "key",
			provision.DeletionSecretNamespace: "ns"},
	}}
	if err := discard(t.Context(), d, volume); err == nil || !strings.Contains(err.Error(),
		"called without secrets because secret ns/key") {
		t.Errorf("Discard = %v", err)
	}
}

// discard deletes the volume with the handle.
func discard(ctx context.Context, d *Deleter, volume *v1.PersistentVolume) error {
	call, err := d.PrepareDiscard(ctx, volume, "handle")
	if err != nil {
		return err
	}
	return call(ctx)
}
