package provisioner

import (
	"testing"

	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

func TestRequestSurvivesTheJournal(t *testing.T) {
	s := newStorage(&scripted{})
	planned, skeleton, err := s.Prepare(t.Context(), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	stored, secret := planned.Stored()
	text, err := journal.Encode(journal.Entry{UID: "1", Namespace: "default", Name: "data", Request: stored,
		Secret: secret, Volume: skeleton})
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 700 {
		t.Errorf("the entry has %d bytes, want fewer than 700", len(text))
	}
	entry, err := journal.Decode("1", text)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := s.Restore(entry.Request, entry.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if !planned.Equal(restored) {
		t.Errorf("restored = %+v, want %+v", restored, planned)
	}
	options := restored.(*request).options()
	if options.PVName != "pvc-1" || options.StorageClass.Parameters["tier"] != "ssd" ||
		options.SelectedNode.Status.Addresses == nil || options.SelectedNode.Status.Images != nil {
		t.Errorf("options = %+v", options)
	}
}

func TestOnlyMeaningfulChangesMakeRequestsDiffer(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*controller.ProvisionOptions)
		equal  bool
	}{
		"claim version": {func(o *controller.ProvisionOptions) { o.PVC.ResourceVersion = "10" }, true},
		"node status":   {func(o *controller.ProvisionOptions) { o.SelectedNode.Status.Addresses = nil }, true},
		"parameter":     {func(o *controller.ProvisionOptions) { o.StorageClass.Parameters["tier"] = "hdd" }, false},
		"annotation":    {func(o *controller.ProvisionOptions) { o.PVC.Annotations["path"] = "b" }, false},
		"node":          {func(o *controller.ProvisionOptions) { o.SelectedNode.Name = "node-2" }, false},
		"no node":       {func(o *controller.ProvisionOptions) { o.SelectedNode = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			options := testOptions()
			tc.change(&options)
			if got := newRequest(testOptions()).Equal(newRequest(options)); got != tc.equal {
				t.Errorf("equal = %v, want %v", got, tc.equal)
			}
		})
	}
}
