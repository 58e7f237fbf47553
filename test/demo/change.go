package demo

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// describeChange returns in plain words what an accepted write of a volume or claim did.
// before is nil for a create, and if the object before the write is not known.
func describeChange(verb string, before, after *unstructured.Unstructured) string {
	switch {
	case verb == "create":
		return describeCreate(after)
	case verb == "delete" && !isDeleting(after), verb == "delete" && len(after.GetFinalizers()) == 0:
		return "deletes " + nameObject(after)
	case verb == "delete" && before == nil:
		return "starts the deletion of " + nameObject(after)
	case verb == "delete" && isDeleting(before):
		return "repeats the deletion of " + nameObject(after)
	case before == nil:
		return "changes " + nameObject(after)
	}
	changed := newChange(before, after)
	for _, rule := range rules {
		rule(changed)
	}
	changed.describeRest()
	return changed.sentence()
}

// describeCreate returns what the create of an object did.
func describeCreate(object *unstructured.Unstructured) string {
	sentence := "creates " + nameObject(object)
	if claim, _, _ := unstructured.NestedString(object.Object, "spec", "claimRef", "name"); claim != "" {
		sentence += " for PVC " + claim
	}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		sentence += " with " + listFinalizers(finalizers)
	}
	return sentence
}

// rules describe the changes that both programs, the administrator and the API server make.
// The first clause names the object, so the rules are in the order of the sentence.
var rules = []func(*change){
	describeProvisioner, describeNode, describeClaimBinding, describeVolumeBinding,
	describePolicy, describePhase, describeDeletion, describeFinalizers,
}

// change is what differs between an object before and after a write.
type change struct {
	before, after *unstructured.Unstructured
	// open are the changed fields that no clause describes yet.
	open map[string]bool
	// clauses have %s for the object.
	clauses []string
}

// say adds a clause and removes the fields that it describes: those with one of the paths
// and those below.
func (c *change) say(clause string, paths ...string) {
	c.clauses = append(c.clauses, clause)
	for field := range c.open {
		for _, path := range paths {
			if field == path || strings.HasPrefix(field, path+".") {
				delete(c.open, field)
			}
		}
	}
}

// text returns a string field before and after the write.
func (c *change) text(path ...string) (before, after string) {
	before, _, _ = unstructured.NestedString(c.before.Object, path...)
	after, _, _ = unstructured.NestedString(c.after.Object, path...)
	return before, after
}

// annotation returns an annotation before and after the write.
func (c *change) annotation(name string) (before, after string) {
	return c.before.GetAnnotations()[name], c.after.GetAnnotations()[name]
}

// sentence joins the clauses. The first one names the object.
func (c *change) sentence() string {
	if len(c.clauses) == 0 {
		return "changes nothing of " + nameObject(c.after)
	}
	sentence := strings.Replace(c.clauses[0], "%s", nameObject(c.after), 1)
	for i, clause := range c.clauses[1:] {
		separator := ", "
		if i == len(c.clauses)-2 {
			separator = " and "
		}
		sentence += separator + strings.Replace(clause, "%s", "it", 1)
	}
	return sentence
}

// describeProvisioner describes the annotations that ask a provisioner for a volume.
func describeProvisioner(c *change) {
	for _, name := range []string{storage.AnnStorageProvisioner, storage.AnnBetaStorageProvisioner} {
		if before, after := c.annotation(name); after != "" && before != after {
			c.say("names the provisioner of %s", annotation(storage.AnnStorageProvisioner),
				annotation(storage.AnnBetaStorageProvisioner))
			return
		}
	}
}

// describeNode describes the annotation of the scheduler.
func describeNode(c *change) {
	if before, after := c.annotation(storage.AnnSelectedNode); after != "" && before != after {
		c.say("selects node "+after+" for %s", annotation(storage.AnnSelectedNode))
	}
}

// describeClaimBinding describes the volume of a claim.
func describeClaimBinding(c *change) {
	switch before, after := c.text("spec", "volumeName"); {
	case before == after:
	case after == "":
		c.say("unbinds %s from PV "+shorten(before), "spec.volumeName", annotation(storage.AnnBindCompleted),
			annotation(storage.AnnBoundByController))
	default:
		c.say("binds %s to PV "+shorten(after), "spec.volumeName", annotation(storage.AnnBindCompleted),
			annotation(storage.AnnBoundByController))
	}
}

// describeVolumeBinding describes the claim of a volume. A reference without a UID only
// reserves the volume.
func describeVolumeBinding(c *change) {
	oldUID, newUID := c.text("spec", "claimRef", "uid")
	oldName, newName := c.text("spec", "claimRef", "name")
	switch {
	case oldName == newName && oldUID == newUID:
	case newName == "":
		c.say("unbinds %s from PVC "+oldName, "spec.claimRef", annotation(storage.AnnBoundByController))
	case newUID == "":
		c.say("reserves %s for PVC "+newName, "spec.claimRef", annotation(storage.AnnBoundByController))
	default:
		c.say("binds %s to PVC "+newName, "spec.claimRef", annotation(storage.AnnBoundByController))
	}
}

// describePolicy describes the reclaim policy of a volume.
func describePolicy(c *change) {
	if before, after := c.text("spec", "persistentVolumeReclaimPolicy"); before != after {
		c.say("sets the reclaim policy of %s to "+after, "spec.persistentVolumeReclaimPolicy")
	}
}

// describePhase describes the phase, and what changes with it.
func describePhase(c *change) {
	if before, after := c.text("status", "phase"); before != after {
		c.say("marks %s "+after, "status.phase", "status.accessModes", "status.capacity", "status.lastPhaseTransitionTime",
			"status.message", "status.reason")
	}
}

// describeDeletion describes a deletion that waits for finalizers.
func describeDeletion(c *change) {
	if !isDeleting(c.before) && isDeleting(c.after) {
		c.say("starts the deletion of %s", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds")
	}
}

// describeFinalizers describes finalizers that were added and removed.
func describeFinalizers(c *change) {
	before, after := c.before.GetFinalizers(), c.after.GetFinalizers()
	if added := without(after, before); len(added) > 0 {
		c.say("adds "+listFinalizers(added)+" to %s", "metadata.finalizers")
	}
	if removed := without(before, after); len(removed) > 0 {
		c.say("removes "+listFinalizers(removed)+" from %s", "metadata.finalizers")
	}
}

// describeRest names the changed fields that no rule describes.
func (c *change) describeRest() {
	if len(c.open) > 0 {
		c.say("changes " + join(sortedKeys(c.open)) + " of %s")
	}
}
