package demo

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The actors on the timeline besides the programs.
const (
	you       = "you"
	csiDriver = "CSI driver"
	watched   = "state"
)

// adminUser is the user in the admin kubeconfig, which the demo uses.
const adminUser = "kubernetes-admin"

// The resources whose writes are shown.
const (
	volumes = "persistentvolumes"
	claims  = "persistentvolumeclaims"
)

// nouns are the short names of the resources, as in kubectl.
var nouns = map[string]string{volumes: "PV", claims: "PVC"}

// describeWrite returns the event of a request that writes a volume or claim, and false
// for any other request. The timeline says what an accepted write of one object changed.
func describeWrite(request sandbox.Event) (Event, bool) {
	noun, shown := nouns[request.Resource]
	if !shown || request.Group != "" || !request.Writes() {
		return Event{}, false
	}
	return Event{
		After:  request.Object,
		Kind:   kindWrite,
		Time:   request.Time.Add(-request.Duration),
		Who:    nameOf(request.User),
		What:   describeRequest(request, noun),
		Verb:   request.Verb,
		Object: path.Join(request.Resource, request.Name, request.Subresource),
		Code:   strconv.Itoa(request.Code),
	}, true
}

// describeRequest returns what is known without the object: a refused write, or a write of
// several objects.
func describeRequest(request sandbox.Event, noun string) string {
	object := strings.TrimSpace(noun + " " + shorten(request.Name))
	switch {
	case request.Code >= 300 && request.Verb == "deletecollection":
		return fmt.Sprintf("tries to delete all %ss → %d", noun, request.Code)
	case request.Code >= 300:
		return fmt.Sprintf("tries to %s %s → %d", request.Verb, object, request.Code)
	case request.Verb == "deletecollection":
		return "deletes all " + noun + "s"
	}
	return "changes " + object
}

// describeCall returns the event of a call that creates or deletes a volume, and false
// for any other call.
func describeCall(call csimock.Call) (Event, bool) {
	if call.Method != "CreateVolume" && call.Method != "DeleteVolume" {
		return Event{}, false
	}
	return Event{
		Kind:    kindCall,
		Time:    call.Time,
		Who:     csiDriver,
		What:    strings.Join(strings.Fields(call.Method+" "+call.Volume+" → "+call.Code), " "),
		Verb:    call.Method,
		Object:  call.Volume,
		Code:    call.Code,
		Volumes: call.Volumes,
	}, true
}

// describeVolume returns the event of a volume's new state at the time now.
func describeVolume(volume *v1.PersistentVolume, gone bool, now time.Time) Event {
	return describeState(volumes, volume, string(volume.Status.Phase), gone, now)
}

// describeClaim returns the event of a claim's new state at the time now.
func describeClaim(claim *v1.PersistentVolumeClaim, gone bool, now time.Time) Event {
	return describeState(claims, claim, string(claim.Status.Phase), gone, now)
}

// describeState returns the event of an object's new state.
func describeState(resource string, object metav1.Object, phase string, gone bool, now time.Time) Event {
	event := Event{
		Kind:   kindState,
		Time:   now,
		Who:    watched,
		What:   nouns[resource] + " " + shorten(object.GetName()) + ": ",
		Object: path.Join(resource, object.GetName()),
		UID:    object.GetUID(), Version: object.GetResourceVersion(),
	}
	if gone {
		event.Gone = true
		event.What += "gone from the API"
		return event
	}
	event.Phase = phase
	event.Deleting = object.GetDeletionTimestamp() != nil
	event.Finalizers = object.GetFinalizers()
	event.What += strings.Join(facts(event), ", ")
	return event
}

// facts are the parts of a sentence about a state: phase, deletion, finalizers.
func facts(state Event) []string {
	var parts []string
	if state.Phase != "" {
		parts = append(parts, state.Phase)
	}
	if state.Deleting {
		parts = append(parts, "Terminating")
	}
	if len(state.Finalizers) == 0 {
		return append(parts, "no finalizers")
	}
	return append(parts, listFinalizers(state.Finalizers))
}

// nameOf returns the name on the timeline of a user of the API server.
func nameOf(user string) string {
	if user == adminUser {
		return you
	}
	return strings.TrimPrefix(user, "system:serviceaccount:"+deploy.Namespace+":")
}

// shorten cuts the name of a provisioned volume, pvc-<UID of the claim>, after the first
// part of the UID, and leaves any other name unchanged.
func shorten(name string) string {
	if parts := strings.Split(name, "-"); len(parts) == 6 && parts[0] == "pvc" {
		return parts[0] + "-" + parts[1]
	}
	return name
}

// shortenFinalizer returns the short name of a finalizer that our programs manage, and
// any other finalizer unchanged.
func shortenFinalizer(name string) string {
	switch finalizer.Name(name) {
	case finalizer.External:
		return "external-provisioner"
	case finalizer.InTree, finalizer.VolumeProtection, finalizer.ClaimProtection, finalizer.CloneSource,
		finalizer.SnapshotSource:
		return path.Base(name)
	}
	return name
}
