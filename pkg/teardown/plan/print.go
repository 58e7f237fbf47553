package plan

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// Print writes a plan or a report for a person: the items, then who deletes, then totals and problems, so that these are
// on the screen. now is the time of the API server.
func Print(out io.Writer, document *teardown.Document, now time.Time) error {
	p := &page{Writer: bufio.NewWriter(out), columns: terminal.WidthOf(out), now: now}
	p.items(document)
	p.workers(document.Workers)
	p.line("")
	c := document.Cluster
	p.line("Cluster %s at %s, Kubernetes %s, %s", orUnknown(c.ID), c.Server, orUnknown(c.Version), terminal.Count(c.Nodes, "node"))
	p.phase(document)
	p.totals(document)
	p.problems(document)
	return p.Flush()
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// page is text of a certain width.
type page struct {
	*bufio.Writer
	columns int
	now     time.Time
}

// line writes a line; text of the cluster in it cannot control the terminal.
func (p *page) line(format string, values ...any) {
	_, _ = p.WriteString(strings.TrimRight(terminal.Printable(fmt.Sprintf(format, values...)), " ") + "\n")
}

// wrapped writes a sentence in lines of the width, the further ones indented.
func (p *page) wrapped(first, sentence string) {
	indent := strings.Repeat(" ", len(first))
	for i, line := range terminal.Wrap(terminal.Printable(sentence), p.columns-len(first)) {
		if i > 0 {
			first = indent
		}
		p.line("%s", first+line)
	}
}

// names are what items of a kind are called.
var names = map[teardown.Kind]string{teardown.Volume: "volume", teardown.Snapshot: "snapshot",
	teardown.LoadBalancer: "load balancer", teardown.Ingress: "Ingress", teardown.Gateway: "Gateway",
	teardown.Participant: "participant"}

// Kinds are the kinds in the order of the text.
var Kinds = []teardown.Kind{teardown.Volume, teardown.Snapshot, teardown.LoadBalancer, teardown.Gateway, teardown.Ingress,
	teardown.Participant}

// items writes one line for each item, by kind.
func (p *page) items(document *teardown.Document) {
	for _, kind := range Kinds {
		header := false
		for i := range document.Items {
			item := &document.Items[i]
			if item.Kind != kind {
				continue
			}
			if !header {
				header = true
				p.line("%-8s %-42s %8s %6s  %s", "FATE", strings.ToUpper(names[kind]), "SIZE", "AGE", "HANDLE OR ADDRESS, REASON")
			}
			p.item(item)
		}
		if header {
			p.line("")
		}
	}
}

func (p *page) item(item *teardown.Item) {
	size, age := "", ""
	if item.Size > 0 {
		size = Size(item.Size)
	}
	if !item.Created.IsZero() {
		age = duration.HumanDuration(p.now.Sub(item.Created))
	}
	p.line("%-8s %-42s %8s %6s  %s", fateOf(item), nameOfItem(item), size, age, described(item))
	for root := range blocker.Roots(item.Blockers) {
		p.wrapped("           ", root.Reason.String()+": "+messageOf(&root))
		for next := range strings.Lines(root.Next) {
			p.line("             %s", strings.TrimRight(next, "\n"))
		}
	}
}

// messageOf says what blocks, who has to act, and the first evidence.
func messageOf(b *blocker.Blocker) string {
	text := b.Object.String()
	if b.Holder != "" {
		text += ", " + b.Holder
	}
	if len(b.Evidence) > 0 {
		text += ": " + b.Evidence[0].Text
	}
	return text
}

// fateOf says what happens or has happened to the item.
func fateOf(item *teardown.Item) string {
	switch item.Fate {
	case teardown.Planned:
		return string(item.Plan)
	case teardown.Kept:
		return "keep"
	default:
		return string(item.Fate)
	}
}

func nameOfItem(item *teardown.Item) string {
	switch {
	case item.Kind == teardown.Participant:
		return item.ExternalID
	case item.Claim != "":
		return item.Claim + " (" + item.Object.Name + ")"
	case item.Object.Namespace != "":
		return item.Object.Namespace + "/" + item.Object.Name
	}
	return item.Object.Name
}

// described returns the words of the last column.
func described(item *teardown.Item) string {
	if item.Kind == teardown.Participant {
		return item.Object.Namespace + ": " + item.Reason
	}
	var words []string
	for _, word := range []string{item.Driver, item.ExternalID} {
		if word != "" {
			words = append(words, word)
		}
	}
	text := strings.Join(words, " ")
	if text != "" {
		text += ", "
	}
	text += item.Reason
	if item.Plan == teardown.PlanDelete && item.Evidence == teardown.NoEvidence {
		text += ", its end cannot be seen"
	}
	return text
}

// Size returns bytes as a person writes them.
func Size(bytes int64) string {
	for _, unit := range []struct {
		of   int64
		name string
	}{{1 << 40, "Ti"}, {1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}} {
		if bytes >= unit.of {
			return strconv.FormatFloat(float64(bytes*10/unit.of)/10, 'f', -1, 64) + unit.name
		}
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

func (p *page) workers(workers []teardown.Worker) {
	if len(workers) == 0 {
		return
	}
	p.line("WHO DELETES")
	for _, worker := range workers {
		where := worker.Where
		if where == "" {
			where = "not visible in the cluster"
		}
		p.line("%-8s %s: %d, %s", worker.State, worker.For, worker.Objects, where)
	}
}

func (p *page) phase(document *teardown.Document) {
	if document.Phase == teardown.NoPhase {
		return
	}
	text := "Phase " + string(document.Phase)
	if document.Reason != "" {
		text += ", " + string(document.Reason)
	}
	for _, at := range []struct {
		name string
		time *time.Time
	}{{"started", document.Started}, {"deadline", document.Deadline}, {"ended", document.Ended}} {
		if at.time != nil {
			text += ", " + at.name + " " + at.time.UTC().Format(time.RFC3339)
		}
	}
	p.line("%s", text)
}

// totals writes a line for each fate.
func (p *page) totals(document *teardown.Document) {
	if len(document.Items) == 0 {
		if len(document.Incomplete) > 0 {
			p.line("No volume, snapshot or load balancer was found outside of the cluster, but not all was read")
			return
		}
		p.line("Nothing exists outside of the cluster: no volume, snapshot or load balancer was found")
		return
	}
	sums := map[string]map[teardown.Kind]int{}
	bytes := map[string]int64{}
	for i := range document.Items {
		item := &document.Items[i]
		fate := fateOf(item)
		if sums[fate] == nil {
			sums[fate] = map[teardown.Kind]int{}
		}
		sums[fate][item.Kind]++
		if item.Kind == teardown.Volume {
			bytes[fate] += item.Size
		}
	}
	for _, fate := range []string{"delete", "gone", "keep", "remains", "unknown"} {
		var words []string
		for _, kind := range Kinds {
			if count := sums[fate][kind]; count > 0 {
				words = append(words, Counted(kind, count))
			}
		}
		if len(words) == 0 {
			continue
		}
		text := fmt.Sprintf("%-8s %s", strings.ToUpper(fate), strings.Join(words, ", "))
		if bytes[fate] > 0 {
			text += "; " + Size(bytes[fate]) + " of volumes"
		}
		p.line("%s", text)
	}
}

// Counted returns the count with the word for items of the kind.
func Counted(kind teardown.Kind, count int) string {
	name := names[kind]
	if count > 1 && strings.HasSuffix(name, "s") {
		return fmt.Sprintf("%d %ses", count, name)
	}
	return terminal.Count(count, name)
}

// problems writes what refuses last.
func (p *page) problems(document *teardown.Document) {
	for _, sentence := range document.Incomplete {
		said := func(problem teardown.Problem) bool { return strings.Contains(problem.Text, sentence) }
		if !slices.ContainsFunc(document.Problems, said) {
			p.wrapped("incomplete: ", sentence)
		}
	}
	for _, problem := range document.Problems {
		first := "! "
		if problem.Refuses {
			first = "REFUSED: "
		}
		p.wrapped(first, problem.Text)
		for next := range strings.Lines(problem.Next) {
			p.line("    %s", strings.TrimRight(next, "\n"))
		}
	}
}
