package reclaim

import (
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// FirstFinalizers are the finalizers that a volume of an in-tree plugin has in its
// first write, so that there is no moment in which it could be deleted without.
// Deletes tells whether a plugin here can delete the volume.
func FirstFinalizers(honor bool, policy storage.Policy, deletes bool) []string {
	origin := ByMissingPlugin
	if deletes {
		origin = ByPlugin
	}
	if DecideMarks(MarksState{Honor: honor, Policy: policy, Origin: origin}).AddInTree {
		return []string{string(finalizer.InTree)}
	}
	return nil
}
