package reference_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	. "github.com/exeunt-io/exeunt/pkg/garbage/reference"
)

func TestKindOf(t *testing.T) {
	for apiVersion, want := range map[string]string{
		"v1": "/v1", "/v1": "/v1", "apps/v1": "apps/v1", "serving.example.dev/v1beta2": "serving.example.dev/v1beta2",
		"v1beta2": "", "v1alpha1": "", "V1": "", "v2": "", "serving.example.dev": "", "apps": "", "": "", "apps/": "",
		"serving.example.dev/V1": "", "serving.example.dev/1": "", "serving.example.dev/v1/Service": "", "apps/v1.2": "",
	} {
		t.Run(apiVersion, func(t *testing.T) {
			kind, valid := KindOf(apiVersion, "Service")
			if got := kind.Group + "/" + kind.Version; valid != (want != "") || valid &&
				(got != want || kind.Kind != "Service") {
				t.Errorf("KindOf(%q) = %v, %v, want %q", apiVersion, kind, valid, want)
			}
		})
	}
}

func TestKindInLowerCaseIsKind(t *testing.T) {
	served := schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	for kind, want := range map[schema.GroupKind]bool{
		served: true, {Group: "apps", Kind: "replicaset"}: true,
		{Group: "apps", Kind: "Replicaset"}: false, {Group: "apps", Kind: "REPLICASET"}: false,
		{Group: "apps", Kind: "replicasets"}: false, {Kind: "replicaset"}: false,
	} {
		if got := Names(kind, served); got != want {
			t.Errorf("Names(%v, %v) = %v, want %v", kind, served, got, want)
		}
	}
}
