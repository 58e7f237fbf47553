package families_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// splitKind returns the kind and the group of "Kind" or "Kind.group".
func splitKind(name string) (kind, group string) {
	kind, group, _ = strings.Cut(name, ".")
	return kind, group
}

// kindsOf returns the kinds of the row, or a kind that no row names.
func kindsOf(family families.Family) []string {
	if len(family.Kinds) > 0 {
		return family.Kinds
	}
	return []string{"Example.example.com"}
}

// example returns a finalizer that fits the pattern.
func example(pattern string) string { return strings.ReplaceAll(pattern, "*", "example") }

func TestEveryRowIsComplete(t *testing.T) {
	for _, family := range families.All() {
		for field, text := range map[string]string{
			"Name": family.Name, "Controller.Name": family.Controller.Name, "When": family.When, "Alive": family.Alive,
			"Force": family.Force, "Source": family.Source,
		} {
			if strings.TrimSpace(text) == "" || strings.TrimSpace(text) != text || strings.HasSuffix(text, ".") {
				t.Errorf("row %s %v: %s is %q", family.Name, family.Finalizers, field, text)
			}
		}
		if len(family.Finalizers) == 0 {
			t.Errorf("row %s has no finalizer", family.Name)
		}
	}
}

func TestSourcesLinkToFilesOfRepositories(t *testing.T) {
	for _, family := range families.All() {
		link, err := url.Parse(family.Source)
		if err != nil || link.Scheme != "https" || link.Host != "github.com" || strings.Count(link.Path, "/") < 5 ||
			!strings.Contains(link.Path, "/blob/") {
			t.Errorf("row %s: %q is no link to a file of a repository", family.Name, family.Source)
		}
	}
}

func TestEveryFinalizerFindsItsRow(t *testing.T) {
	for _, family := range families.All() {
		for _, pattern := range family.Finalizers {
			if !families.Match(pattern, example(pattern)) {
				t.Errorf("pattern %q does not match %q", pattern, example(pattern))
			}
			for _, name := range kindsOf(family) {
				kind, group := splitKind(name)
				found, known := families.Find(example(pattern), kind, group)
				if !known || found.Source != family.Source || !slices.Equal(found.Finalizers, family.Finalizers) {
					t.Errorf("finalizer %q of %s finds %s %v, want %s %v", example(pattern), name, found.Name, found.Finalizers,
						family.Name, family.Finalizers)
				}
			}
		}
	}
}

func TestNoFinalizerIsInTwoRows(t *testing.T) {
	rows := families.All()
	for i, family := range rows {
		for _, other := range rows[i+1:] {
			for _, finalizer := range family.Finalizers {
				if slices.Contains(other.Finalizers, finalizer) && shareKind(family, other) {
					t.Errorf("%q is in the rows %s and %s for the same kind", finalizer, family.Name, other.Name)
				}
			}
		}
	}
}

// shareKind reports whether an object may fit the kinds of both rows.
func shareKind(a, b families.Family) bool {
	if len(a.Kinds) == 0 && len(b.Kinds) == 0 {
		return true
	}
	for _, name := range a.Kinds {
		kind, _ := splitKind(name)
		if slices.Contains(b.Kinds, name) || slices.Contains(b.Kinds, kind) {
			return true
		}
	}
	for _, name := range b.Kinds {
		if kind, _ := splitKind(name); slices.Contains(a.Kinds, kind) {
			return true
		}
	}
	return false
}

func TestFortyFamiliesOfOperators(t *testing.T) {
	names := map[string]bool{}
	for _, family := range families.All() {
		names[family.Name] = true
	}
	for _, own := range []string{"Kubernetes", "external-provisioner", "external-attacher", "external-snapshotter",
		"volume populators"} {
		if !names[own] {
			t.Errorf("no row of %s", own)
		}
		delete(names, own)
	}
	if len(names) < 40 {
		t.Errorf("%d families of operators, want 40", len(names))
	}
}

func TestNamesThatManyProgramsShareIdentifyNone(t *testing.T) {
	shared := []string{"manager", "operator", "controller", "controller-manager", "server", "main", "app"}
	for _, family := range families.All() {
		for _, controller := range family.Controllers() {
			for _, name := range slices.Concat(controller.Images, controller.Commands) {
				if slices.Contains(shared, name) || strings.ContainsAny(name, ":@ *") {
					t.Errorf("%s: many programs have the image or command %q", controller.Name, name)
				}
			}
			if slices.Contains(controller.Leases, "*") {
				t.Errorf("%s: every Lease fits", controller.Name)
			}
			own := 0
			for _, value := range controller.Labels {
				if !slices.Contains(shared, value) {
					own++
				}
			}
			if len(controller.Labels) > 0 && own == 0 {
				t.Errorf("%s: many programs have the labels %v", controller.Name, controller.Labels)
			}
		}
	}
}

func TestEventSourcesHaveReasons(t *testing.T) {
	for _, family := range families.All() {
		for _, controller := range family.Controllers() {
			// Without reasons, a warning about anything would count as a failed cleanup.
			if len(controller.EventSources) > 0 && len(controller.ErrorReasons) == 0 {
				t.Errorf("%s: the table names event sources and no reasons", controller.Name)
			}
			if len(controller.SuccessReasons) > 0 && len(controller.ErrorReasons) == 0 {
				t.Errorf("%s: the table names a success and no error", controller.Name)
			}
		}
	}
}

func TestFind(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizer, kind, group string
		source                 string // part of the link of the row, "" if there is none
	}{
		"protected volume":         {"kubernetes.io/pv-protection", "PersistentVolume", "", "pkg/volume/util"},
		"finalizer on other kind":  {"kubernetes.io/pv-protection", "Pod", "", ""},
		"foreground of any kind":   {"foregroundDeletion", "Widget", "example.com", "apimachinery"},
		"namespace":                {"kubernetes", "Namespace", "", "kubernetes/api"},
		"attacher of a driver":     {"external-attacher/ebs-csi-aws-com", "PersistentVolume", "", "external-attacher"},
		"kind decides":             {"finalizers.fluxcd.io", "HelmRelease", "helm.toolkit.fluxcd.io", "helm-controller"},
		"kind of another group":    {"finalizers.fluxcd.io", "HelmRelease", "example.com", ""},
		"the longest pattern wins": {"awscluster.infrastructure.cluster.x-k8s.io", "AWSCluster", "infrastructure.cluster.x-k8s.io", "cluster-api-provider-aws"},
		"pattern of any provider":  {"gcpcluster.infrastructure.cluster.x-k8s.io", "GCPCluster", "infrastructure.cluster.x-k8s.io", "infra-cluster.md"},
		"kind wins over any kind":  {"machine.cluster.x-k8s.io", "Machine", "cluster.x-k8s.io", "cluster_types.go"},
		"unknown finalizer":        {"example.com/x", "Widget", "example.com", ""},
		"no finalizer":             {"", "Pod", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			family, known := families.Find(tc.finalizer, tc.kind, tc.group)
			if known != (tc.source != "") || !strings.Contains(family.Source, tc.source) {
				t.Errorf("Find(%q, %q, %q) = %s (%s), %v, want a link with %q", tc.finalizer, tc.kind, tc.group, family.Name,
					family.Source, known, tc.source)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"", "", true}, {"", "a", false},
		{"*", "", true}, {"*", "a/b", true}, {"a*", "a", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "ab", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "a-b-c", true}, {"a*b*c", "a-c-b", false}, {"a*b*b", "ab", false},
		{"a**b", "ab", true}, {"*.ceph.rook.io", "cephcluster.ceph.rook.io", true}, {"*.ceph.rook.io", "ceph.rook.io", false},
	} {
		if got := families.Match(tc.pattern, tc.text); got != tc.want {
			t.Errorf("Match(%q, %q) = %v, want %v", tc.pattern, tc.text, got, tc.want)
		}
	}
}

// slowMatch is Match, written as its definition.
func slowMatch(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return slowMatch(pattern[1:], text) || text != "" && slowMatch(pattern, text[1:])
	}
	return text != "" && text[0] == pattern[0] && slowMatch(pattern[1:], text[1:])
}

func FuzzMatchAndFind(f *testing.F) {
	f.Add("a*b", "a-b", "Pod", "")
	f.Add("*.*", "a.b.c", "Widget", "example.com")
	f.Add("kubernetes.io/pv-protection", "kubernetes.io/pv-protection", "PersistentVolume", "")
	f.Fuzz(func(t *testing.T, pattern, finalizer, kind, group string) {
		if len(pattern) < 12 && len(finalizer) < 24 {
			if got, want := families.Match(pattern, finalizer), slowMatch(pattern, finalizer); got != want {
				t.Errorf("Match(%q, %q) = %v, want %v", pattern, finalizer, got, want)
			}
		}
		family, known := families.Find(finalizer, kind, group)
		if !known {
			return
		}
		if !slices.ContainsFunc(family.Finalizers, func(own string) bool { return families.Match(own, finalizer) }) {
			t.Errorf("Find(%q) returns a row with %v", finalizer, family.Finalizers)
		}
		if len(family.Kinds) > 0 && !slices.Contains(family.Kinds, kind) && !slices.Contains(family.Kinds, kind+"."+group) {
			t.Errorf("Find(%q, %q, %q) returns a row of %v", finalizer, kind, group, family.Kinds)
		}
	})
}
