package printer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
)

// shownObjects limits the objects of one group in text that is not wide.
const shownObjects = 5

// survey returns what waits, by root blocker: a line per group, then its objects.
func (p page) survey(survey why.Survey) string {
	var b strings.Builder
	switch {
	case len(survey.Items) == 0 && survey.Younger > 0:
		b.WriteString(p.wrap("", "  ", "nothing that was seen has waited for "+duration.HumanDuration(survey.OlderThan)+
			" or longer"))
	case len(survey.Items) == 0 && len(survey.Incomplete) == 0:
		b.WriteString("nothing waits for its deletion\n")
	case len(survey.Items) == 0:
		b.WriteString("nothing that was seen waits for its deletion\n")
	}
	for i, group := range survey.Groups() {
		if i > 0 {
			b.WriteByte('\n')
		}
		p.group(&b, group)
	}
	if survey.Younger > 0 {
		b.WriteString(p.wrap("", "  ", fmt.Sprintf("%s for less than %s: --older-than=0 shows what they wait for",
			waits(survey.Younger), duration.HumanDuration(survey.OlderThan))))
	}
	p.incomplete(&b, survey.Incomplete)
	return b.String()
}

func waits(n int) string {
	if n == 1 {
		return "1 object waits"
	}
	return fmt.Sprintf("%d objects wait", n)
}

func (p page) group(b *strings.Builder, group why.Group) {
	if group.Root == nil {
		b.WriteString(p.wrap("", "  ", fmt.Sprintf("%s: %s", p.paint(group.Verdict),
			terminal.Count(len(group.Items), "object")+" without a known blocker")))
	} else {
		b.WriteString(p.wrap("", "  ", fmt.Sprintf("%s %s: %s, %s", p.paint(group.Verdict), group.Root.Reason,
			terminal.Printable(holder(*group.Root)), terminal.Count(len(group.Items), "object"))))
	}
	for i, item := range group.Items {
		if left := len(group.Items) - i; !p.wide && i == shownObjects && left > 1 {
			fmt.Fprintf(b, "  ... and %d more, -o name or -o wide lists all\n", left)
			break
		}
		b.WriteString(p.row(p.object(item.Object)+p.grace(item.Deadline), p.age(why.Since(item))))
	}
	if group.Root != nil {
		p.next(b, "  ", group.Root.Next)
	}
	p.incomplete(b, group.Incomplete())
}

// grace says how an object in a list was deleted, "" if without a grace period.
func (p page) grace(deadline *blocker.Deadline) string {
	switch {
	case deadline == nil:
		return ""
	case deadline.Forced:
		return ", forced"
	default:
		return ", deadline " + p.left(*deadline)
	}
}

// holder names what a group of objects waits for.
func holder(root blocker.Blocker) string {
	switch {
	case root.Holder != "":
		return root.Holder
	case root.Finalizer != "":
		return "finalizer " + root.Finalizer
	default:
		return root.Object.String()
	}
}

// row returns the name of an object, shortened to fit, and its age at the right.
func (p page) row(name, age string) string {
	const ageWidth = 8
	width := max(p.columns-ageWidth-2, 10)
	if length := utf8.RuneCountInString(name); !p.wide && length > width {
		runes := []rune(name)
		name = string(runes[:width/2]) + "…" + string(runes[length-width/2+1:])
	}
	return strings.TrimRight(fmt.Sprintf("  %-*s%*s", width, name, ageWidth, age), " ") + "\n"
}
