package forecast

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// Print writes the report: as JSON, or as text if format is "".
func (r *Report) Print(out io.Writer, format string) error {
	text := r.text(terminal.WidthOf(out))
	if format == "json" {
		encoded, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the forecast: %w", err)
		}
		text = string(terminal.EscapeJSON(encoded)) + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

// page lays out text.
type page struct {
	strings.Builder
	columns int
	now     time.Time
}

func (r *Report) text(columns int) string {
	p := &page{columns: columns}
	p.now, _ = time.Parse(time.RFC3339, r.Now)
	p.head(r)
	for _, one := range r.Pods {
		p.pod(one)
	}
	for _, d := range r.Disks {
		p.disk(d)
	}
	for _, sentence := range r.Incomplete {
		p.line("", "  ", "incomplete: "+sentence)
	}
	return p.String()
}

func (p *page) head(r *Report) {
	what := fmt.Sprintf("node %s, if it were deleted now", r.Node)
	if r.Terminating {
		what = fmt.Sprintf("node %s is being deleted", r.Node)
	}
	switch {
	case r.Deadline == "":
		p.line("", "  ", what+": no deadline")
	case r.PeriodFrom == "":
		p.line("", "  ", what+": deadline "+p.at(r.Deadline))
	default:
		p.line("", "  ", fmt.Sprintf("%s: deadline %s, %s from %s", what, p.at(r.Deadline), r.Period, r.PeriodFrom))
	}
	if r.Deadline != "" {
		p.line("  ", "    ", fmt.Sprintf("grace periods end at %s (P), the machine is stopped at %s", r.GraceEnds, r.Stop))
	}
	for _, note := range r.Notes {
		p.line("  ", "    ", note)
	}
	switch {
	case len(r.Pods) == 0:
		p.line("  ", "    ", "no pod is on the node")
	case r.CutShort == 0:
		p.line("  ", "    ", fmt.Sprintf("none of %s is cut short", terminal.Count(len(r.Pods), "pod")))
	default:
		p.line("  ", "    ", fmt.Sprintf("%d of %s would be cut short, if nothing changes", r.CutShort,
			terminal.Count(len(r.Pods), "pod")))
	}
}

// pod writes one pod: when it may go, what keeps it, what it would miss, and what does not come back.
func (p *page) pod(one Pod) {
	line := "pod " + one.Namespace + "/" + one.Name + ": " + one.when(p)
	if one.Forced > p.now.UTC().Format(time.RFC3339) && one.First != AtL && one.First != AtP {
		line += "; at the latest " + p.at(one.Forced)
	}
	p.line("", "    ", line)
	for _, b := range one.Blockers {
		text := b.Text
		if b.Object != "" {
			text = b.Object + ": " + text
		}
		p.line("    ", "      ", b.Reason+": "+text)
	}
	if text := one.Misses.text(one.GraceSeconds); text != "" {
		p.line("  ! ", "      ", text)
	}
	for _, loss := range one.Losses {
		p.line("    ", "      ", "lost: "+loss.Text)
	}
}

func (one Pod) when(p *page) string {
	switch one.First {
	case AtOnce:
		return "at once"
	case AfterBudget:
		return "after its budget has room"
	case AfterOrdinary:
		return "after ordinary pods"
	case AfterOthers:
		return "after all other pods and their volumes"
	case WithNamespace:
		return "with its namespace"
	case AtTime:
		return "from " + p.at(one.FirstTime)
	case AtL:
		return "at " + p.at(one.FirstTime) + ", its grace period before the end of all"
	case AtP:
		return "at " + p.at(one.FirstTime) + ", when the grace periods of the others have ended"
	case Ending:
		return "is being deleted"
	case Never:
		return "never, until what keeps it changes"
	case Stays:
	}
	return "stays"
}

func (m Misses) text(grace int64) string {
	var parts []string
	if m.GraceSeconds > 0 {
		parts = append(parts, fmt.Sprintf("would miss %d of the %d s of its grace period", m.GraceSeconds, grace))
	}
	if len(m.Against) > 0 {
		parts = append(parts, "would be deleted against "+strings.Join(m.Against, ", "))
	}
	return strings.Join(parts, ", and ")
}

func (p *page) disk(d Disk) {
	name := "disk " + d.Volume
	if d.Volume == "" {
		name = "disk of " + d.Attachment
	}
	if len(d.Pods) > 0 {
		name += " of " + strings.Join(d.Pods, ", ")
	}
	p.line("", "    ", name+": "+d.Text)
}

// at returns a time with how far away it is.
func (p *page) at(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return text
	case at.After(p.now):
		return text + " (in " + duration.HumanDuration(at.Sub(p.now)) + ")"
	case at.Equal(p.now):
		return "now"
	}
	return text + " (" + duration.HumanDuration(p.now.Sub(at)) + " ago)"
}

// line writes the words in lines that fit the page.
func (p *page) line(first, rest, text string) {
	line := first
	for i, word := range strings.Fields(terminal.Printable(text)) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > p.columns {
			p.WriteString(line + "\n")
			line = rest + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	p.WriteString(line + "\n")
}
