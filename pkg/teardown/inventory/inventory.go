package inventory

import (
	"maps"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// Options are what the caller knows beside the objects.
type Options struct {
	// Shared are the Handles of volumes of other clusters (#05).
	Shared map[string]bool
	// APIServer are the host names and IP addresses of the API server that we use (#33).
	APIServer map[string]bool
	// Last are the namespaces that a person wants to go last.
	Last []string
	// RequestWait is how long the answer to a requested claim is awaited (#21), 2 minutes by default.
	RequestWait time.Duration
}

// Participant is a finalizer of an operator on Alive.
type Participant struct {
	Finalizer string
	// Namespace is where the operator runs, "" if it is not known.
	Namespace string
	// Text says what it cleans up.
	Text string
	// Stuck: there is evidence that it will not finish (#55).
	Stuck bool
}

// attachment is what is kept of a VolumeAttachment.
type attachment struct {
	name, volume string
	uid          types.UID
}

// Inventory is what is known of the objects.
type Inventory struct {
	options Options

	volumes map[string]*volume
	// disks counts the volumes by handle, referring those by the UID of their claim.
	disks       map[string]int
	referring   map[types.UID]int
	claims      map[key]*request
	pods        map[key]*pod
	namespaces  map[string]namespace
	outsides    map[string]*outside // by kind and name
	contents    map[string]*content
	attachments map[string]attachment
	failures    map[types.UID]*failures
	// delayed are the classes that wait for the first consumer.
	delayed map[string]bool
	// driverNames are the registered drivers and those of volumes; words and leases say where they run.
	driverNames map[string]bool
	// clusters are the namespaces of Ceph clusters, with the driver of their volumes.
	clusters map[word]bool
	words    map[word]int
	podWords map[key][]word
	leases   map[key]lease
	// backends are the namespaces of the services behind a webhook configuration or an APIService.
	backends map[string][]string
	// services are the addresses of each Service, serving the Services of each address.
	services map[key][]string
	serving  map[string][]key

	participants []Participant
	stuck        map[types.UID]bool
	// infrastructure are the namespaces that were once seen to be: they stay after their pods have gone.
	infrastructure map[string]bool
	// requested is since when an answer is awaited; unknown are the claims that went without one.
	requested map[types.UID]time.Time
	unknown   map[types.UID]teardown.Item

	found *drivers
	last  *view
	// below is that of the last view.
	below map[string]bool
}

// New returns an Inventory without objects.
func New(options Options) *Inventory {
	if options.RequestWait == 0 {
		options.RequestWait = 2 * time.Minute
	}
	i := &Inventory{
		options: options,
		volumes: map[string]*volume{}, disks: map[string]int{}, referring: map[types.UID]int{}, claims: map[key]*request{},
		pods: map[key]*pod{}, namespaces: map[string]namespace{}, outsides: map[string]*outside{}, delayed: map[string]bool{},
		contents: map[string]*content{}, attachments: map[string]attachment{}, failures: map[types.UID]*failures{},
		driverNames: map[string]bool{}, clusters: map[word]bool{}, words: map[word]int{}, podWords: map[key][]word{}, leases: map[key]lease{},
		services: map[key][]string{}, serving: map[string][]key{},
		backends: map[string][]string{}, infrastructure: map[string]bool{},
		requested: map[types.UID]time.Time{}, unknown: map[types.UID]teardown.Item{},
	}
	for _, name := range append([]string{metav1.NamespaceSystem, ownNamespace}, options.Last...) {
		i.infrastructure[name] = true
	}
	return i
}

// Set adds or replaces an object, and reports whether a decision may change: the renewal of a Lease changes none. Kinds
// that a teardown does not need are ignored.
func (i *Inventory) Set(object any) bool {
	if renewed, is := object.(*coordinationv1.Lease); is {
		return i.setLease(renewed)
	}
	i.set(object)
	return true
}

func (i *Inventory) set(object any) {
	i.last = nil
	switch o := object.(type) {
	case *v1.PersistentVolume:
		i.setVolume(o)
	case *v1.PersistentVolumeClaim:
		i.claims[keyOf(o)] = factsOfClaim(o)
		delete(i.unknown, o.UID) // it is judged by itself
	case *v1.Pod:
		i.setPod(o)
	case *v1.Namespace:
		i.namespaces[o.Name] = factsOfNamespace(o)
	case *v1.Service:
		i.setOutside("Service", keyOf(o), factsOfService(o))
		i.setService(keyOf(o), addressesOf(o))
	case *networkingv1.Ingress:
		i.setOutside("Ingress", keyOf(o), factsOfIngress(o))
	case *v1.Event:
		i.setEvent(o)
	case *storagev1.VolumeAttachment:
		i.setAttachment(o)
	case *storagev1.StorageClass:
		i.delayed[o.Name] = storage.WaitsForFirstConsumer(o)
	case *storagev1.CSIDriver:
		i.addDriver(o.Name)
	case *admissionv1.ValidatingWebhookConfiguration:
		i.backends["validating "+o.Name] = backendsOf(validatingClients(o))
	case *admissionv1.MutatingWebhookConfiguration:
		i.backends["mutating "+o.Name] = backendsOf(mutatingClients(o))
	case *unstructured.Unstructured:
		i.setUnstructured(o)
	}
}

// Remove removes an object.
func (i *Inventory) Remove(object any) {
	i.last = nil
	switch o := object.(type) {
	case *v1.PersistentVolume:
		i.count(o.Name, -1)
		delete(i.volumes, o.Name)
	case *v1.PersistentVolumeClaim:
		i.removeClaim(o)
	case *v1.Pod:
		delete(i.pods, keyOf(o))
		i.setWords(keyOf(o), nil)
	case *v1.Namespace:
		delete(i.namespaces, o.Name)
	case *v1.Service:
		i.setOutside("Service", keyOf(o), nil)
		i.setService(keyOf(o), nil)
	case *networkingv1.Ingress:
		i.setOutside("Ingress", keyOf(o), nil)
	case *storagev1.VolumeAttachment:
		delete(i.attachments, o.Name)
	case *storagev1.StorageClass:
		delete(i.delayed, o.Name)
	case *coordinationv1.Lease:
		i.removeLease(o)
	case *admissionv1.ValidatingWebhookConfiguration:
		delete(i.backends, "validating "+o.Name)
	case *admissionv1.MutatingWebhookConfiguration:
		delete(i.backends, "mutating "+o.Name)
	case *unstructured.Unstructured:
		i.removeUnstructured(o)
	}
}

func (i *Inventory) setVolume(v *v1.PersistentVolume) {
	facts := factsOfVolume(v).sharing(i.claims)
	i.count(v.Name, -1)
	i.volumes[facts.name] = facts
	i.count(v.Name, 1)
	i.addDriver(facts.driver)
	i.addCluster(facts.driver, facts.handle, secretsOf(v.Spec.CSI)...)
	if facts.claimed { // the answer has come late
		delete(i.unknown, facts.claimUID)
		delete(i.requested, facts.claimUID)
	}
}

// count adds to the counts of volumes with the disk and the claim of the volume.
func (i *Inventory) count(name string, number int) {
	known := i.volumes[name]
	if known == nil {
		return
	}
	add(i.referring, known.claimUID, number)
	for _, handle := range known.disks {
		add(i.disks, handle, number)
	}
}

// add adds to a count. A count of none is no entry.
func add[K comparable](counts map[K]int, of K, number int) {
	if counts[of] += number; counts[of] == 0 {
		delete(counts, of)
	}
}

func (i *Inventory) addDriver(name string) {
	if name != "" && !i.driverNames[name] {
		i.driverNames[name], i.found = true, nil
	}
}

func (i *Inventory) setPod(p *v1.Pod) {
	if facts := factsOfPod(p); facts != nil {
		i.pods[keyOf(p)] = facts
	} else {
		delete(i.pods, keyOf(p))
	}
	i.setWords(keyOf(p), wordsOf(p))
}

// setWords replaces the texts of a pod of a CSI driver.
func (i *Inventory) setWords(pod key, words []word) {
	before := i.podWords[pod]
	if slices.Equal(before, words) {
		return
	}
	for _, w := range before {
		if i.words[w]--; i.words[w] == 0 {
			delete(i.words, w)
		}
	}
	for _, w := range words {
		i.words[w]++
	}
	i.podWords[pod], i.found = words, nil
	if words == nil {
		delete(i.podWords, pod)
	}
}

func (i *Inventory) setOutside(kind string, name key, facts *outside) {
	id := kind + " " + name.namespace + "/" + name.name
	if facts == nil {
		delete(i.outsides, id)
		return
	}
	i.outsides[id] = facts
}

func (i *Inventory) setAttachment(a *storagev1.VolumeAttachment) {
	if name := a.Spec.Source.PersistentVolumeName; name != nil {
		i.attachments[a.Name] = attachment{a.Name, *name, a.UID}
	}
}

// setLease keeps Leases, but for those of nodes, and reports whether a decision may change.
func (i *Inventory) setLease(l *coordinationv1.Lease) bool {
	if l.Namespace == v1.NamespaceNodeLease {
		return false
	}
	facts := factsOfLease(l)
	before, known := i.leases[keyOf(l)]
	if known && before.ours == facts.ours && before.driver == facts.driver && before.term == facts.term &&
		slices.Equal(before.entries, facts.entries) {
		return false
	}
	if !known {
		i.found = nil
	}
	i.last, i.leases[keyOf(l)] = nil, facts
	for _, e := range facts.entries { // the journal shows what becomes of them
		delete(i.unknown, e.uid)
	}
	return true
}

func (i *Inventory) setUnstructured(u *unstructured.Unstructured) {
	switch u.GetKind() {
	case "Gateway":
		i.setOutside("Gateway", keyOf(u), factsOfGateway(u))
	case "VolumeSnapshot":
		i.setOutside("VolumeSnapshot", keyOf(u), factsOfSnapshot(u))
	case "VolumeSnapshotContent":
		facts := factsOfContent(u)
		i.contents[u.GetName()] = facts
		i.addDriver(facts.driver)
		i.addCluster(facts.driver, facts.handle)
	case "APIService":
		i.backends["served "+u.GetName()] = []string{text(u, "spec", "service", "namespace")}
	}
}

func (i *Inventory) removeUnstructured(u *unstructured.Unstructured) {
	switch u.GetKind() {
	case "Gateway", "VolumeSnapshot":
		i.setOutside(u.GetKind(), keyOf(u), nil)
	case "VolumeSnapshotContent":
		delete(i.contents, u.GetName())
	case "APIService":
		delete(i.backends, "served "+u.GetName())
	}
}

// refersTo reports whether a volume refers to the claim.
func (i *Inventory) refersTo(c *request) bool { return i.referring[c.uid] > 0 }

// entries returns the entries of all journals by the UID of their claim.
func (i *Inventory) entries() map[types.UID]entry {
	found := map[types.UID]entry{}
	for _, l := range i.leases {
		for _, e := range l.entries {
			found[e.uid] = e
		}
	}
	return found
}

// SetParticipants replaces the participants: the finalizers of operators on Alive.
func (i *Inventory) SetParticipants(participants []Participant) {
	i.last, i.participants = nil, slices.Clone(participants)
}

// SetStuck replaces the UIDs of objects (pods, claims, volumes, snapshots) with evidence that they will not go.
func (i *Inventory) SetStuck(stuck map[types.UID]bool) {
	i.last, i.stuck = nil, maps.Clone(stuck)
}
