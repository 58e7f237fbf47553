package inventory

import (
	"maps"
	"path"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// ownNamespace is where Exeunt runs.
const ownNamespace = "exeunt-system"

// ownSuffix ends the holder of a Lease that a program of Exeunt holds (package controller).
const ownSuffix = "_exeunt"

// word is a text of a pod of a CSI driver, which may name the driver.
type word struct{ namespace, text string }

// wordsOf returns the texts of a pod that runs a part of a CSI driver, nil for another pod.
func wordsOf(p *v1.Pod) []word {
	texts, isCSI := []string{""}, false
	for i := range p.Spec.Volumes {
		if source := p.Spec.Volumes[i].HostPath; source != nil {
			isCSI = isCSI || strings.Contains(source.Path, "/plugins/") || strings.Contains(source.Path, "/plugins_registry")
			texts = append(texts, source.Path)
		}
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		isCSI = isCSI || strings.HasPrefix(path.Base(c.Image), "csi-")
		lines := slices.Concat(c.Command, c.Args)
		for _, env := range c.Env {
			lines = append(lines, env.Value)
		}
		isCSI = isCSI || slices.ContainsFunc(lines, namesSocket)
		texts = append(texts, lines...)
	}
	if !isCSI {
		return nil
	}
	words := make([]word, 0, len(texts))
	for _, text := range texts {
		if found := (word{p.Namespace, text}); !slices.Contains(words, found) {
			words = append(words, found)
		}
	}
	return words
}

// namesSocket reports whether the text is the address of a CSI driver.
func namesSocket(text string) bool {
	return strings.Contains(text, "csi.sock") || strings.HasPrefix(strings.TrimLeft(text, "-"), "csi-address")
}

// lease is what is kept of a Lease.
type lease struct {
	ours bool
	// driver is the one of whose calls the Lease is a journal, "" if it is none, or if its writer leaves entries out.
	driver string
	// term is that of a leader Lease, or of the last writer of a journal.
	term    journal.Custody
	entries []entry
}

// entry is a request of the provisioner of Exeunt whose volume is not recorded yet.
type entry struct {
	claim      key
	uid        types.UID
	driver     string
	unresolved bool
}

func factsOfLease(l *coordinationv1.Lease) lease {
	facts := lease{ours: strings.HasSuffix(journal.HolderOf(l), ownSuffix),
		term: journal.Custody{LeaderLease: l.UID, Transitions: ptr.Deref(l.Spec.LeaseTransitions, 0)}}
	owner, kind, _, is := journal.Find(l)
	if !is {
		return facts
	}
	facts.term = journal.ParseCustody(l.Annotations[journal.CustodyAnnotation])
	if _, off := l.Annotations[journal.OffAnnotation]; kind == journal.KindActive && !off {
		facts.driver = owner.Driver
	}
	decoded, broken := journal.Entries(l)
	for i := range decoded {
		facts.entries = append(facts.entries, entry{key{decoded[i].Namespace, decoded[i].Name}, decoded[i].UID, owner.Driver,
			kind == journal.KindUnresolved})
	}
	for _, uid := range broken {
		facts.entries = append(facts.entries, entry{uid: uid, driver: owner.Driver, unresolved: true})
	}
	return facts
}

// backendsOf returns the namespaces of the services behind webhooks.
func backendsOf(clients []admissionv1.WebhookClientConfig) []string {
	var namespaces []string
	for _, client := range clients {
		if client.Service != nil {
			namespaces = append(namespaces, client.Service.Namespace)
		}
	}
	return namespaces
}

func validatingClients(c *admissionv1.ValidatingWebhookConfiguration) (clients []admissionv1.WebhookClientConfig) {
	for i := range c.Webhooks {
		clients = append(clients, c.Webhooks[i].ClientConfig)
	}
	return clients
}

func mutatingClients(c *admissionv1.MutatingWebhookConfiguration) (clients []admissionv1.WebhookClientConfig) {
	for i := range c.Webhooks {
		clients = append(clients, c.Webhooks[i].ClientConfig)
	}
	return clients
}

// drivers is where CSI drivers run.
type drivers struct {
	// namespaces are those of each driver.
	namespaces map[string]map[string]bool
	// all are the namespaces of CSI drivers.
	all map[string]bool
	// unnamed are the namespaces with pods of a CSI driver in which no driver is named.
	unnamed map[string]bool
	// clusters are the namespaces of the Ceph clusters of each driver.
	clusters map[string]map[string]bool
}

// of returns the namespaces in which the driver runs, or may run, and in which its storage runs.
func (d *drivers) of(driver string) map[string]bool {
	found := d.namespaces[driver]
	if len(found) == 0 {
		found = d.unnamed
	}
	if len(d.clusters[driver]) == 0 {
		return found
	}
	all := maps.Clone(d.clusters[driver])
	maps.Copy(all, found)
	return all
}

// findDrivers finds where CSI drivers run: by what their pods name, and by the Leases of their sidecars.
func (i *Inventory) findDrivers() *drivers {
	if i.found != nil {
		return i.found
	}
	found := &drivers{map[string]map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}}
	add := func(driver, namespace string) {
		if found.namespaces[driver] == nil {
			found.namespaces[driver] = map[string]bool{}
		}
		found.namespaces[driver][namespace], found.all[namespace] = true, true
		delete(found.unnamed, namespace)
	}
	for w := range i.words {
		found.all[w.namespace], found.unnamed[w.namespace] = true, true
	}
	for driver := range i.driverNames {
		for w := range i.words {
			if families.NamesDriver(w.text, driver) {
				add(driver, w.namespace)
			}
		}
		for l := range i.leases {
			if families.IsSidecarLease(l.name, driver) {
				add(driver, l.namespace)
			}
		}
	}
	for c := range i.clusters {
		if found.clusters[c.text] == nil {
			found.clusters[c.text] = map[string]bool{}
		}
		found.clusters[c.text][c.namespace], found.all[c.namespace] = true, true
	}
	i.found = found
	return found
}

// isJournaled reports whether the journal says if a volume is requested for the claim: the provisioner of Exeunt leads
// for the driver, and its journal is of this term. Without the gate or the right to write Leases it leads all the same.
func (i *Inventory) isJournaled(driver string, claim types.UID) bool {
	if said := i.failures[claim]; said != nil && said.unjournaled {
		return false
	}
	name := strings.ToLower(families.SanitizedDriver(driver))
	for l, leader := range i.leases {
		if leader.ours && strings.ToLower(l.name) == name && i.hasJournal(driver, leader.term) {
			return true
		}
	}
	return false
}

// hasJournal reports whether the leader of the term has taken over, or begun, a journal of the driver.
func (i *Inventory) hasJournal(driver string, term journal.Custody) bool {
	for _, l := range i.leases {
		if l.driver != "" && l.driver == driver && l.term == term {
			return true
		}
	}
	return false
}
