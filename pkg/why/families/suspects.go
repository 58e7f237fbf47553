package families

import "strings"

// Candidate is a workload that may have set an unknown finalizer, and what fits.
type Candidate struct {
	// Workload is kind namespace/name.
	Workload string
	// ServesGroup: it serves a custom resource group or a webhook that fits the finalizer.
	ServesGroup bool
	// RunsManager: its image or command fits the field manager of the finalizer.
	RunsManager bool
	// HasRights: its service account may change finalizers of the object.
	HasRights bool
	// HoldsLease: one of its pods holds a Lease that fits.
	HoldsLease bool
}

// fits returns how many facts fit.
func (c Candidate) fits() int {
	count := 0
	for _, fact := range []bool{c.ServesGroup, c.RunsManager, c.HasRights, c.HoldsLease} {
		if fact {
			count++
		}
	}
	return count
}

// Reasons says what fits, for the evidence.
func (c Candidate) Reasons() string {
	var reasons []string
	for _, fact := range []struct {
		holds bool
		text  string
	}{
		{c.ServesGroup, "serves the API group or a webhook"},
		{c.RunsManager, "runs an image or command with the name of the program that set the finalizer"},
		{c.HasRights, "may change the object"},
		{c.HoldsLease, "holds a Lease"},
	} {
		if fact.holds {
			reasons = append(reasons, fact.text)
		}
	}
	return strings.Join(reasons, ", ")
}

// Suspects returns the one workload that fits by at least two facts, and true; or, if
// none or several do, all workloads that fit by at least one, and false. Facts of
// candidates with the same Workload are joined.
func Suspects(candidates []Candidate) (suspects []Candidate, named bool) {
	var strong []Candidate
	for _, candidate := range joined(candidates) {
		if candidate.fits() >= 1 {
			suspects = append(suspects, candidate)
		}
		if candidate.fits() >= 2 {
			strong = append(strong, candidate)
		}
	}
	if len(strong) == 1 {
		return strong, true
	}
	return suspects, false
}

// joined returns one candidate for each workload, in the order of the first.
func joined(candidates []Candidate) []Candidate {
	var all []Candidate
	index := map[string]int{}
	for _, candidate := range candidates {
		i, seen := index[candidate.Workload]
		if !seen {
			index[candidate.Workload] = len(all)
			all = append(all, candidate)
			continue
		}
		all[i].ServesGroup = all[i].ServesGroup || candidate.ServesGroup
		all[i].RunsManager = all[i].RunsManager || candidate.RunsManager
		all[i].HasRights = all[i].HasRights || candidate.HasRights
		all[i].HoldsLease = all[i].HoldsLease || candidate.HoldsLease
	}
	return all
}

// sharedDomains are domains that many projects share.
var sharedDomains = map[string]bool{
	"k8s.io": true, "x-k8s.io": true, "kubernetes.io": true, "github.com": true, "github.io": true, "gitlab.io": true,
	"openshift.io": true, "coreos.com": true, "operatorhub.io": true,
}

// FitsGroup reports whether the domain of the finalizer and the API group belong to each
// other: they are equal, or one is a subdomain of the other.
func FitsGroup(finalizer, group string) bool {
	domain, _, _ := strings.Cut(finalizer, "/")
	if group == "" || !strings.Contains(group, ".") {
		return false
	}
	return domain == group || isSubdomain(domain, group) || isSubdomain(group, domain)
}

// isSubdomain reports whether name is below a domain that one project owns.
func isSubdomain(name, domain string) bool {
	return strings.Contains(domain, ".") && !sharedDomains[domain] && strings.HasSuffix(name, "."+domain)
}
