package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/pkg/audit"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// printAdopted prints a PersistentVolume for each handle of --adopt, or none if one of the
// volumes is no orphan.
func (f *auditFlags) printAdopted(ctx context.Context, streams genericiooptions.IOStreams, cluster *audit.Cluster,
	report *audit.Report) error {
	class, err := f.readClass(ctx, cluster, report.Driver)
	if err != nil {
		return err
	}
	var adopted []*v1.PersistentVolume
	var refusals []error
	for _, handle := range f.adopt {
		volume, err := report.Adopt(handle, class)
		var refused *audit.RefusedError
		switch {
		case errors.As(err, &refused):
			refusals = append(refusals, err)
		case err != nil:
			return err
		}
		adopted = append(adopted, volume)
	}
	if len(refusals) > 0 {
		return terminal.ExitError{Code: exitRefused, Err: errors.Join(append(refusals, reasons(report)...)...)}
	}
	return f.printVolumes(streams, adopted)
}

// reasons returns what could not be read.
func reasons(report *audit.Report) []error {
	all := make([]error, len(report.Incomplete))
	for i, sentence := range report.Incomplete {
		all[i] = errors.New("incomplete: " + sentence)
	}
	return all
}

func (f *auditFlags) readClass(ctx context.Context, cluster *audit.Cluster,
	driver string) (*storagev1.StorageClass, error) {
	if f.storageClass == "" {
		return nil, nil
	}
	class, err := cluster.StorageClass(ctx, f.storageClass)
	switch {
	case err != nil:
		return nil, err
	case class.Provisioner != driver:
		return nil, fmt.Errorf("storage class %s is of provisioner %s, not of driver %s", class.Name, class.Provisioner,
			driver)
	}
	return class, nil
}

func (f *auditFlags) printVolumes(streams genericiooptions.IOStreams, volumes []*v1.PersistentVolume) error {
	var text strings.Builder
	if f.output == "json" {
		list := v1.PersistentVolumeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
		for _, volume := range volumes {
			list.Items = append(list.Items, *volume)
		}
		encoded, err := json.MarshalIndent(list, "", "  ")
		if err != nil {
			return fmt.Errorf("encode PersistentVolumes: %w", err)
		}
		text.Write(append(encoded, '\n'))
	} else {
		for _, volume := range volumes {
			encoded, err := yaml.Marshal(volume)
			if err != nil {
				return fmt.Errorf("encode PersistentVolume %s: %w", volume.Name, err)
			}
			text.WriteString("---\n")
			text.Write(encoded)
		}
	}
	_, err := fmt.Fprint(streams.Out, text.String())
	return err
}
