package check

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// keys are the annotations that each program of ours may change.
type keys struct{ pvController, provisioner []string }

var (
	volumeKeys = keys{
		pvController: []string{storage.AnnBoundByController, storage.AnnMigratedTo},
		provisioner:  []string{reclaim.Annotation},
	}
	claimKeys = keys{
		pvController: []string{storage.AnnBindCompleted, storage.AnnBoundByController, storage.AnnStorageProvisioner,
			storage.AnnBetaStorageProvisioner, storage.AnnMigratedTo, storage.AnnSelectedNode},
		provisioner: []string{storage.AnnSelectedNode},
	}
)

// foreignMetadata returns a label or annotation that the actor changed and that is not its
// own, "" for none.
func (r *report) foreignMetadata(old, now *metav1.ObjectMeta, own keys) string {
	mine := own.pvController
	if r.step.Actor == Provisioner {
		mine = own.provisioner
	}
	if key := difference(old.Labels, now.Labels, nil); key != "" {
		return key
	}
	return difference(old.Annotations, now.Annotations, mine)
}

// difference returns the first key in alphabetical order that differs and is not one of
// mine, "" for none.
func difference(old, now map[string]string, mine []string) string {
	first := ""
	note := func(key string) {
		if (first == "" || key < first) && !slices.Contains(mine, key) {
			first = key
		}
	}
	for key, value := range old {
		if other, kept := now[key]; !kept || other != value {
			note(key)
		}
	}
	for key := range now {
		if _, had := old[key]; !had {
			note(key)
		}
	}
	return first
}

// ownsFinalizers reports whether the finalizers that are not the actor's own are the same
// in both lists, in the same order. inTree: the volume has an in-tree source; pv-controller
// then replaces the provisioner's finalizer by its own.
func (r *report) ownsFinalizers(old, now []string, inTree bool) bool {
	if slices.Equal(old, now) {
		return true
	}
	i, j := r.nextForeign(old, 0, inTree), r.nextForeign(now, 0, inTree)
	for i < len(old) && j < len(now) && old[i] == now[j] {
		i, j = r.nextForeign(old, i+1, inTree), r.nextForeign(now, j+1, inTree)
	}
	return i == len(old) && j == len(now)
}

// nextForeign returns the index of the next finalizer that is not the actor's own.
func (r *report) nextForeign(list []string, from int, inTree bool) int {
	for from < len(list) && r.owns(finalizer.Name(list[from]), inTree) {
		from++
	}
	return from
}

// owns reports whether the actor adds or removes the finalizer.
func (r *report) owns(name finalizer.Name, inTree bool) bool {
	if name == finalizer.External && inTree && r.step.Actor == PVController {
		return true
	}
	holder, known := finalizer.HolderOf(string(name))
	return known && holder.Component == string(r.step.Actor)
}

// holdsClaim returns a finalizer that was added to the claim and must not be, "" for none.
func (r *report) holdsClaim(old, now *v1.PersistentVolumeClaim) string {
	for _, name := range now.Finalizers {
		if slices.Contains(old.Finalizers, name) {
			continue
		}
		source := finalizer.Name(name) == finalizer.CloneSource && r.world.isCloned(now)
		if finalizer.Name(name) != finalizer.ClaimProtection && !source {
			return name
		}
	}
	return ""
}

// isCloned reports whether a claim that waits for its volume is a clone of the source.
func (s *Snapshot) isCloned(source *v1.PersistentVolumeClaim) bool {
	for _, claim := range s.Claims {
		needed := protection.NeededSource(claim)
		if needed.Kind == storage.SourceClaim && needed.Namespace == source.Namespace && needed.Name == source.Name {
			return true
		}
	}
	return false
}
