package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestWritesAreUndoneWhileThereAreFaults(t *testing.T) {
	client := fake.NewClientset()
	stored := client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	for _, on := range []bool{true, true, false, false, true} {
		if err := setUndo(t.Context(), client, on); err != nil {
			t.Fatal(err)
		}
		bindings, err := stored.List(t.Context(), metav1.ListOptions{})
		if err != nil || (len(bindings.Items) == 1) != on {
			t.Errorf("undone: %t, with the bindings %v, %v", on, bindings.Items, err)
		}
	}
}
