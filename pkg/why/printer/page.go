package printer

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// shownChildren limits the blockers of one blocker in text that is not wide.
const shownChildren = 20

// page lays out text.
type page struct {
	columns int
	wide    bool
	color   bool
	now     time.Time
}

// report returns the tree of one report, the verdict first.
func (p page) report(report blocker.Report) string {
	var b strings.Builder
	b.WriteString(p.wrap("", "  ", p.paint(report.Verdict)+": "+p.object(report.Object)+ending(report)))
	if p.wide && report.Object.UID != "" {
		fmt.Fprintf(&b, "  uid: %s\n", terminal.Printable(report.Object.UID))
	}
	p.deadline(&b, report.Deadline)
	p.blockers(&b, "", report.Blockers)
	p.incomplete(&b, report.Incomplete)
	return b.String()
}

// deadline writes until when the object may end gracefully, and where that was read.
func (p page) deadline(b *strings.Builder, deadline *blocker.Deadline) {
	if deadline == nil {
		return
	}
	where := string(deadline.Source) + " " + deadline.Where()
	switch {
	case deadline.Forced:
		p.field(b, "  ", "forced", p.since(deadline.Time)+", the object is to end at once; by "+where)
	default:
		p.field(b, "  ", "deadline", fmt.Sprintf("%s (%s), %s; by %s", deadline.Time, p.left(*deadline), deadline.Length(),
			where))
	}
}

// left returns the time that is left of a grace period, or since when it has ended.
func (p page) left(deadline blocker.Deadline) string {
	end, err := time.Parse(time.RFC3339, deadline.Time)
	switch {
	case err != nil:
		return ""
	case deadline.Passed(p.now):
		return "passed " + duration.HumanDuration(p.now.Sub(end)) + " ago"
	default:
		return duration.HumanDuration(end.Sub(p.now)) + " left"
	}
}

// ending completes the first line of a report without blockers.
func ending(report blocker.Report) string {
	switch {
	case report.Verdict == blocker.Gone:
		return " is gone, or never was"
	case len(report.Blockers) > 0:
		return ""
	case report.Verdict == blocker.None:
		return ", no deletion was requested"
	case report.Verdict == blocker.Waiting:
		return ", nothing keeps it: it goes now"
	default:
		return ""
	}
}

func (p page) blockers(b *strings.Builder, indent string, blockers []blocker.Blocker) {
	for i, child := range blockers {
		left := len(blockers) - i
		if !p.wide && i == shownChildren && left > 1 {
			fmt.Fprintf(b, "%s└─ ... and %d more, -o wide shows all\n", indent, left)
			return
		}
		if left == 1 {
			p.blocker(b, indent+"└─ ", indent+"   ", child)
		} else {
			p.blocker(b, indent+"├─ ", indent+"│  ", child)
		}
	}
}

// blocker writes one blocker: first begins its first line, rest all others.
func (p page) blocker(b *strings.Builder, first, rest string, shown blocker.Blocker) {
	inner := rest
	if len(shown.Blockers) > 0 {
		inner += "│ "
	} else {
		inner += "  "
	}
	b.WriteString(p.wrap(first, inner, p.paint(shown.Verdict)+" "+shown.Reason.String()+": "+p.object(shown.Object)))
	if p.wide {
		p.field(b, inner, "meaning", shown.Reason.Describe().Meaning)
		p.field(b, inner, "look at", shown.Reason.Describe().Look)
		p.field(b, inner, "uid", shown.Object.UID)
	}
	p.field(b, inner, "finalizer", shown.Finalizer)
	p.field(b, inner, "holder", shown.Holder)
	p.field(b, inner, "since", p.since(shown.Since))
	for _, evidence := range shown.Evidence {
		p.field(b, inner, string(evidence.Source), evidence.Text)
	}
	p.next(b, inner, shown.Next)
	p.blockers(b, rest, shown.Blockers)
}

func (p page) field(b *strings.Builder, indent, name, text string) {
	if text != "" {
		b.WriteString(p.wrap(indent, indent+"  ", terminal.Printable(name)+": "+terminal.Printable(text)))
	}
}

// next writes the next step, line by line: a command in one line of any length, for a part of a
// command does something else; comments and sentences wrapped.
func (p page) next(b *strings.Builder, indent, text string) {
	if text == "" {
		return
	}
	label := "next: "
	for line := range strings.SplitSeq(text, "\n") {
		line = terminal.Printable(line)
		comment, isComment := strings.CutPrefix(line, "# ")
		switch {
		case isCommand(line), isComment && isCommand(comment):
			b.WriteString(indent + label + line + "\n")
		case isComment:
			b.WriteString(p.wrapWords(indent+label+"# ", indent+"      # ", sentenceWords(comment)))
		default:
			b.WriteString(p.wrap(indent+label, indent+"      ", line))
		}
		label = "      "
	}
}

func isCommand(text string) bool {
	program, _, _ := strings.Cut(text, " ")
	return program == "kubectl" || program == "exeunt" || program == "echo"
}

// sentenceWords returns the words of a comment. A word that begins a compound command has the word
// before it: without "# " no line begins with one, which would swallow the next line.
func sentenceWords(comment string) []string {
	var words []string
	for _, word := range strings.Fields(comment) {
		if len(words) > 0 && slices.Contains(shellReserved, word) {
			words[len(words)-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

// shellReserved are the reserved words of a shell.
var shellReserved = []string{"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
	"select", "function", "coproc", "time", "in", "read"}

// incomplete writes what was not seen. Many missing rights are one line unless wide.
func (p page) incomplete(b *strings.Builder, sentences []string) {
	const few, prefix = 3, "no right to list "
	var kinds []string
	for _, sentence := range sentences {
		if right, missing := strings.CutPrefix(sentence, prefix); missing {
			kind, _, _ := strings.Cut(right, ";")
			kinds = append(kinds, kind)
		}
	}
	merge := !p.wide && len(kinds) > few
	if merge {
		text := fmt.Sprintf("%s%d kinds: %s; grant them, or the ClusterRole of deploy/viewer; -o wide shows each rule",
			prefix, len(kinds), strings.Join(kinds, ", "))
		b.WriteString(p.wrap("", "  ", "incomplete: "+terminal.Printable(text)))
	}
	for _, sentence := range sentences {
		if !merge || !strings.HasPrefix(sentence, prefix) {
			b.WriteString(p.wrap("", "  ", "incomplete: "+terminal.Printable(sentence)))
		}
	}
}

// wrap returns the text in lines that fit the page. A word that does not fit has a line of
// its own.
func (p page) wrap(first, rest, text string) string {
	return p.wrapWords(first, rest, strings.Fields(text))
}

func (p page) wrapWords(first, rest string, words []string) string {
	var b strings.Builder
	b.WriteString(first)
	length := utf8.RuneCountInString(first)
	for i, word := range words {
		wide := visible(word)
		switch {
		case i == 0:
		case !p.wide && length+1+wide > p.columns:
			b.WriteString("\n" + rest)
			length = utf8.RuneCountInString(rest)
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += wide
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// object returns Kind name, or Kind namespace/name, escaped.
func (p page) object(object blocker.Object) string {
	if p.wide && object.Group != "" {
		object.Kind += "." + object.Group
	}
	return terminal.Printable(object.String())
}

// since returns a time with its age.
func (p page) since(text string) string {
	if age := p.age(text); age != "" {
		return text + " (" + age + ")"
	}
	return text
}

// age returns how long ago the time in RFC 3339 was, "" if it cannot be said.
func (p page) age(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || p.now.Before(at) {
		return ""
	}
	return duration.HumanDuration(p.now.Sub(at))
}

const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
	plain  = "\x1b[0m"
)

// paint returns the verdict in its color.
func (p page) paint(verdict blocker.Verdict) string {
	if !p.color {
		return verdict.String()
	}
	shade := green
	switch verdict {
	case blocker.Gone, blocker.None:
	case blocker.Stuck:
		shade = red
	case blocker.Unknown, blocker.Waiting:
		shade = yellow
	}
	return shade + verdict.String() + plain
}

// visible returns the width of a word without its color.
func visible(word string) int {
	for _, code := range []string{red, yellow, green, plain} {
		word = strings.ReplaceAll(word, code, "")
	}
	return utf8.RuneCountInString(word)
}
