package provision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

const prefix = "csi.storage.k8s.io/"

func classOf(parameters ...string) *storagev1.StorageClass {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Parameters: map[string]string{}}
	for i := 0; i < len(parameters); i += 2 {
		class.Parameters[parameters[i]] = parameters[i+1]
	}
	return class
}

func claimOf(annotations ...string) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data",
		Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		claim.Annotations[annotations[i]] = annotations[i+1]
	}
	return claim
}

func reference(namespace, name string) *v1.SecretReference {
	return &v1.SecretReference{Namespace: namespace, Name: name}
}

// secretForEverything returns the secrets of a class that has one secret for every call.
func secretForEverything(r *v1.SecretReference) provision.Secrets {
	return provision.Secrets{Provisioner: r, ControllerModify: r, ControllerPublish: r, ControllerExpand: r, NodeStage: r,
		NodePublish: r, NodeExpand: r}
}

var secretsCases = map[string]struct {
	class *storagev1.StorageClass
	claim *v1.PersistentVolumeClaim
	want  provision.Secrets
}{
	"no secrets": {classOf("tier", "gold"), claimOf(), provision.Secrets{}},
	"default secret": {
		classOf(prefix+"secret-name", "s", prefix+"secret-namespace", "ns"), claimOf(),
		secretForEverything(reference("ns", "s")),
	},
	"one secret per call": {
		classOf(prefix+"provisioner-secret-name", "p", prefix+"provisioner-secret-namespace", "ns",
			prefix+"controller-publish-secret-name", "cp", prefix+"controller-publish-secret-namespace", "ns",
			prefix+"node-stage-secret-name", "st", prefix+"node-stage-secret-namespace", "ns",
			prefix+"node-publish-secret-name", "np", prefix+"node-publish-secret-namespace", "ns",
			prefix+"controller-expand-secret-name", "ce", prefix+"controller-expand-secret-namespace", "ns",
			prefix+"node-expand-secret-name", "ne", prefix+"node-expand-secret-namespace", "ns",
			prefix+"controller-modify-secret-name", "cm", prefix+"controller-modify-secret-namespace", "ns"),
		claimOf(),
		provision.Secrets{
			Provisioner: reference("ns", "p"), ControllerPublish: reference("ns", "cp"), NodeStage: reference("ns", "st"),
			NodePublish:      reference("ns", "np"),
			ControllerExpand: reference("ns", "ce"), NodeExpand: reference("ns", "ne"), ControllerModify: reference("ns", "cm"),
		},
	},
	"old parameter names": {
		classOf("csiProvisionerSecretName", "p", "csiProvisionerSecretNamespace", "ns", "csiControllerPublishSecretName",
			"cp", "csiControllerPublishSecretNamespace", "ns",
			"csiNodeStageSecretName", "st", "csiNodeStageSecretNamespace", "ns", "csiNodePublishSecretName", "np",
			"csiNodePublishSecretNamespace", "ns"),
		claimOf(),
		provision.Secrets{Provisioner: reference("ns", "p"), ControllerPublish: reference("ns", "cp"),
			NodeStage: reference("ns", "st"), NodePublish: reference("ns", "np")},
	},
	"specific secret precedes the default": {
		classOf(prefix+"secret-name", "s", prefix+"secret-namespace", "ns", prefix+"node-stage-secret-name", "st",
			prefix+"node-stage-secret-namespace", "other"),
		claimOf(),
		func() provision.Secrets {
			s := secretForEverything(reference("ns", "s"))
			s.NodeStage = reference("other", "st")
			return s
		}(),
	},
	"all tokens": {
		classOf(prefix+"provisioner-secret-name",
			"${pv.name}.${pvc.namespace}.${pvc.name}.${pvc.annotations['example.com/key']}",
			prefix+"provisioner-secret-namespace", "${pvc.namespace}-${pv.name}"),
		claimOf("example.com/key", "mine"),
		provision.Secrets{Provisioner: reference("team-pvc-1", "pvc-1.team.data.mine")},
	},
	"default secret without prefix is ignored": {classOf("SecretName", "s", "SecretNamespace", "ns"), claimOf(), provision.Secrets{}},
}

func TestSecretsOf(t *testing.T) {
	for name, tc := range secretsCases {
		t.Run(name, func(t *testing.T) {
			got, err := provision.SecretsOf(tc.class, tc.claim, "pvc-1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidSecretNameIsRefused(t *testing.T) {
	name, namespace := prefix+"node-stage-secret-name", prefix+"node-stage-secret-namespace"
	for what, tc := range map[string]struct {
		parameters []string
		names      string
	}{
		"name without namespace":           {[]string{name, "s"}, namespace},
		"namespace without name":           {[]string{namespace, "s"}, name},
		"empty name":                       {[]string{name, "", namespace, "ns"}, name},
		"old and new name":                 {[]string{name, "s", namespace, "ns", "csiNodeStageSecretName", "s"}, "csiNodeStageSecretName"},
		"unknown token":                    {[]string{name, "${pvc.uid}", namespace, "ns"}, "${pvc.uid}"},
		"missing annotation":               {[]string{name, "${pvc.annotations['a']}", namespace, "ns"}, "annotations"},
		"claim name as namespace":          {[]string{name, "s", namespace, "${pvc.name}"}, "${pvc.name}"},
		"annotation as namespace":          {[]string{name, "s", namespace, "${pvc.annotations['key']}"}, "annotations"},
		"unterminated token":               {[]string{name, "${pv.name", namespace, "ns"}, "does not begin"},
		"single dollar sign":               {[]string{name, "a$", namespace, "ns"}, "does not begin"},
		"token without braces":             {[]string{name, "$pvc", namespace, "ns"}, "does not begin"},
		"invalid name":                     {[]string{name, "A_B", namespace, "ns"}, "A_B"},
		"invalid namespace":                {[]string{name, "s", namespace, "a.b"}, "a.b"},
		"invalid name after expansion":     {[]string{name, "-${pvc.name}", namespace, "ns"}, "-data"},
		"default secret without namespace": {[]string{prefix + "secret-name", "s"}, prefix + "secret-namespace"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := provision.SecretsOf(classOf(tc.parameters...), claimOf("key", "value"), "pvc-1")
			var refusal *provision.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Sentence, tc.names) ||
				!strings.Contains(refusal.Sentence, "fast") {
				t.Errorf("SecretsOf = %v, want a refusal that names %q and the class", err, tc.names)
			}
		})
	}
}

func FuzzSecretTemplates(f *testing.F) {
	for _, seed := range []string{"s", "${pv.name}", "${pvc.annotations['k']}", "${", "$$", "${pvc.annotations['", "${}",
		"a${pvc.name}b${pvc.namespace}"} {
		f.Add(seed, "${pvc.namespace}", "k", "v")
	}
	f.Fuzz(func(t *testing.T, name, namespace, key, value string) {
		class := classOf(prefix+"provisioner-secret-name", name, prefix+"provisioner-secret-namespace", namespace)
		secrets, err := provision.SecretsOf(class, claimOf(key, value), "pvc-1")
		if err != nil {
			var refusal *provision.Refusal
			if !errors.As(err, &refusal) {
				t.Errorf("not a refusal: %v", err)
			}
			return
		}
		if got := secrets.Provisioner; len(validation.IsDNS1123Subdomain(got.Name))+
			len(validation.IsDNS1123Label(got.Namespace)) > 0 {
			t.Errorf("%q, %q gave the invalid %v", name, namespace, got)
		}
		if other, err := provision.SecretsOf(class, claimOf(key, fmt.Sprint("x", value)), "pvc-1"); err == nil &&
			other.Provisioner.Namespace != secrets.Provisioner.Namespace {
			t.Errorf("an annotation moved the secret from namespace %s to %s", secrets.Provisioner.Namespace,
				other.Provisioner.Namespace)
		}
	})
}
