package status

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Print writes the report in the format: "", "wide", "json" or "yaml".
func (r *Report) Print(out io.Writer, format string) error {
	var text []byte
	var err error
	switch format {
	case "json":
		if text, err = json.MarshalIndent(r, "", "  "); err == nil {
			text = append(terminal.EscapeJSON(text), '\n')
		}
	case "yaml":
		text, err = yaml.Marshal(r)
	default:
		text = []byte(r.text(format == "wide", terminal.WidthOf(out)))
	}
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// text returns the report as tables of at most 80 columns that fit the terminal, or of any width if wide.
func (r *Report) text(wide bool, columns int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "PROTECTION: %s\n", r.Protection)
	for _, finding := range r.Findings {
		writeWrapped(&b, columns, "! "+finding)
	}
	t := table{&b, wide, columns}
	t.drivers(r.Drivers)
	t.leases(r.Leases)
	t.journals(r.Journals)
	b.WriteString("\n")
	writeWrapped(&b, columns, "ADMISSION POLICY: "+r.Policy.describe())
	writeWrapped(&b, columns, "LOOPS: "+r.Loops.describe())
	if r.Nodes != nil {
		t.section("NODES: "+r.Nodes.describe(), r.Nodes.Findings, r.Nodes.Unseen)
	}
	if r.Teardown != nil {
		t.section("TEARDOWN: "+r.Teardown.describe(), r.Teardown.Findings, r.Teardown.Unseen)
	}
	if r.BeforeSwitch != nil {
		t.beforeSwitch(r.BeforeSwitch)
	}
	for _, sentence := range r.Incomplete {
		writeWrapped(&b, columns, "incomplete: "+sentence)
	}
	return b.String()
}

func (p Policy) describe() string {
	switch {
	case p.State == unserved:
		return "this API server has no MutatingAdmissionPolicy, which Kubernetes 1.36 has; " +
			"a volume that is deleted at once after its policy was set to Delete is not reclaimed"
	case p.State == "present" && p.Binding == "unseen":
		return "present, its binding was not seen"
	case p.State == "present" && !p.Bound:
		return "present, without its binding"
	case p.State == "present" && p.List == "unseen":
		return "present, its list of drivers was not seen"
	case p.State == "present":
		return "present, for the drivers " + orNone(strings.Join(p.Drivers, ", "))
	}
	return p.State
}

func (l Loops) describe() string {
	if len(l.Evidence) == 0 {
		return l.Writers + " seen"
	}
	return l.Writers + ": " + strings.Join(l.Evidence, "; ")
}

// table writes tables.
type table struct {
	*strings.Builder
	wide    bool
	columns int
}

// row writes the cells, each cut to its width unless the output is wide. A cell of the last
// column has any width that is left of 80.
func (t table) row(widths []int, cells ...string) {
	line := ""
	if !t.wide {
		widths = terminal.Narrowed(widths[:len(cells)], t.columns)
	}
	for i, cell := range cells {
		cell = terminal.Printable(orNone(cell))
		if text := []rune(cell); len(text) > widths[i] && !t.wide {
			cell = string(text[:widths[i]-1]) + "…"
		}
		line += cell + strings.Repeat(" ", max(1, widths[i]+1-len([]rune(cell))))
	}
	t.WriteString(strings.TrimRight(line, " ") + "\n")
}

func (t table) drivers(drivers []Driver) {
	t.WriteString("\n")
	if len(drivers) == 0 {
		t.WriteString("No driver was seen.\n")
		return
	}
	widths := []int{25, 15, 9, 7, 7, 5, 5, 40, 40}
	more := func(cells ...string) []string { return cells[:len(cells)-2] }
	if t.wide {
		more = func(cells ...string) []string { return cells }
	}
	t.row(widths, more("DRIVER", "PROVISIONER", "VERSION", "GATE", "VOLUMES", "SAFE", "LEAK", "SEEN BY", "WHERE")...)
	for _, d := range drivers {
		program := d.Provisioner.Program
		if d.Provisioner.SeenBy == "" {
			program = "not visible"
		}
		t.row(widths, more(d.Name, program, d.Provisioner.Version, d.Provisioner.Gate, strconv.Itoa(d.Dynamic),
			strconv.Itoa(d.Protected),
			strconv.Itoa(d.Unprotected+d.TooLate), d.Provisioner.SeenBy, d.Provisioner.Where)...)
	}
}

func (t table) leases(leases []Lease) {
	if len(leases) == 0 {
		return
	}
	t.WriteString("\n")
	widths := []int{31, 27, 12, 6}
	t.row(widths, "LEASE", "HOLDER", "STATE", "AGE")
	for _, l := range leases {
		t.row(widths, l.Namespace+"/"+l.Name, l.Holder, l.State, age(l.AgeSeconds))
	}
}

func (t table) journals(journals []Journal) {
	if len(journals) == 0 {
		return
	}
	t.WriteString("\n")
	widths := []int{26, 24, 10, 15}
	t.row(widths, "JOURNAL", "CLAIM", "STATE", "AGE")
	for _, j := range journals {
		if len(j.Entries) == 0 {
			t.row(widths, j.Driver, "no entries", "", "")
		}
		for _, entry := range j.Entries {
			since := ""
			if entry.Since != "" {
				since = age(entry.AgeSeconds)
			}
			t.row(widths, j.Driver, entry.Claim, entry.State, since)
		}
	}
}

// section writes what says nothing about volumes: a line, what is not as it should be, and what could not be read.
func (t table) section(line string, findings, unseen []string) {
	writeWrapped(t.Builder, t.columns, line)
	for _, finding := range findings {
		writeWrapped(t.Builder, t.columns, "! "+finding)
	}
	for _, sentence := range unseen {
		writeWrapped(t.Builder, t.columns, "not seen: "+sentence)
	}
}

func (t table) beforeSwitch(b *BeforeSwitch) {
	t.WriteString("\n")
	switch {
	case len(b.Deletes) == 0 && b.Complete:
		t.WriteString("A switch to Exeunt deletes no volume.\n")
	case len(b.Deletes) == 0:
		t.WriteString("Which volumes a switch to Exeunt deletes was not seen.\n")
	default:
		widths := []int{24, 21, 18, 14}
		t.row(widths, "A SWITCH DELETES", "PHASE", "CLAIM", "WHEN")
		for _, d := range b.Deletes {
			t.row(widths, d.Name, d.Phase, d.Claim, d.When)
		}
	}
	for _, right := range b.MissingRights {
		writeWrapped(t.Builder, t.columns, "missing right: "+right)
	}
}

// age returns the seconds as a person reads them. A negative age is one of another clock.
func age(seconds int64) string {
	return duration.HumanDuration(time.Duration(max(0, seconds)) * time.Second)
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// writeWrapped writes a sentence, and the command below it in one line of any length.
func writeWrapped(b *strings.Builder, columns int, sentence string) {
	sentence, command, _ := strings.Cut(sentence, "\n")
	for i, line := range terminal.Wrap(terminal.Printable(sentence), columns-2) {
		if i > 0 {
			line = "  " + line
		}
		b.WriteString(line + "\n")
	}
	if command != "" {
		b.WriteString("  " + terminal.Printable(command) + "\n")
	}
}

// readPolicy reads the admission policy, its binding, and its list of drivers.
func (s *survey) readPolicy(ctx context.Context) {
	_, policy := s.admission(ctx, "MutatingAdmissionPolicy", "mutatingadmissionpolicies")
	bound, binding := s.admission(ctx, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
	s.report.Policy = Policy{State: policy.String(), Bound: binding == cluster.Present, Binding: binding.String(),
		Drivers: []string{}}
	if policy == cluster.Absent && !s.servesPolicies() {
		s.report.Policy.State = unserved
	}
	if policy != cluster.Present {
		return
	}
	list, listed, _ := s.Reader.Live(ctx, cluster.DriverList(bound))
	s.report.Policy.List = listed.String()
	if list != nil {
		data, _, _ := unstructured.NestedStringMap(list.Object, "data")
		s.report.Policy.Drivers = slices.Sorted(maps.Keys(data))
	}
	if binding == cluster.Absent {
		s.report.find("the admission policy %s has no binding, and so no effect", deploy.Policy)
	}
}

// unserved is the state of the admission policy on API servers before Kubernetes 1.36.
const unserved = "unserved"

// servesPolicies reports whether the API server has a version of MutatingAdmissionPolicy. A group that does not
// answer counts as yes.
func (s *survey) servesPolicies() bool {
	kinds, complete := s.Reader.ServedIn("admissionregistration.k8s.io")
	return !complete || slices.ContainsFunc(kinds,
		func(r cluster.Resource) bool { return r.Resource == "mutatingadmissionpolicies" })
}

// admission reads an object of the admission policy in the versions that an API server may serve.
func (s *survey) admission(ctx context.Context, kind, resource string) (*unstructured.Unstructured, cluster.Presence) {
	worst := cluster.Absent
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: version, Resource: resource}
		object, presence, _ := s.Reader.Live(ctx, cluster.Ref{Resource: gvr, Kind: kind, Name: deploy.Policy})
		if presence == cluster.Present {
			return object, presence
		}
		if presence == cluster.Unseen {
			worst = cluster.Unseen
		}
	}
	return nil, worst
}
