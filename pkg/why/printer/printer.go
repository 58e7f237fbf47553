package printer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
)

// Format is an output format.
type Format int

const (
	// Text: a tree in the columns of the terminal.
	Text Format = iota
	// Wide: a tree with UIDs and explanations, in lines of any length.
	Wide
	// JSON: the contract of docs/schemas/why.schema.json.
	JSON
	// YAML: the same as YAML.
	YAML
	// Name: the names of objects that wait, as "kubectl get -o name" prints them.
	Name
)

// String returns the name of the format, as --output has it.
func (f Format) String() string { return enum.Name(f, "", "wide", "json", "yaml", "name") }

// ParseFormat returns the format for a value of --output.
func ParseFormat(text string) (Format, error) {
	for format := Text; format <= Name; format++ {
		if format.String() == text {
			return format, nil
		}
	}
	return Text, fmt.Errorf("--output must be json, yaml, wide, name or be left out, not %q", text)
}

// Printer prints reports.
type Printer struct {
	Out    io.Writer
	Format Format
	Color  bool
	// Columns is the width of text, 80 if it is 0.
	Columns int
	// Compact prints JSON in one line per report, and separates YAML documents.
	Compact bool
}

// Report prints the answer for one object. now is the time by the API server.
func (p Printer) Report(report blocker.Report, now time.Time) error {
	switch p.Format {
	case JSON, YAML:
		return p.encode(report)
	case Name:
		return p.names([]blocker.Report{report})
	default:
		return p.write(p.page(now).report(report))
	}
}

// Reports prints the answers for several objects.
func (p Printer) Reports(reports []blocker.Report, now time.Time) error {
	switch p.Format {
	case JSON, YAML:
		return p.encode(why.Survey{Items: append([]blocker.Report{}, reports...)})
	case Name:
		return p.names(reports)
	case Text, Wide:
	}
	var text strings.Builder
	for i, report := range reports {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(p.page(now).report(report))
	}
	return p.write(text.String())
}

// Survey prints all that waits, grouped by root blocker.
func (p Printer) Survey(survey why.Survey, now time.Time) error {
	switch p.Format {
	case JSON, YAML:
		return p.encode(survey)
	case Name:
		return p.names(survey.Items)
	default:
		return p.write(p.page(now).survey(survey))
	}
}

func (p Printer) page(now time.Time) page {
	return page{columns: cmp.Or(p.Columns, terminal.Columns), wide: p.Format == Wide, color: p.Color, now: now}
}

// Value prints any value as JSON or YAML.
func (p Printer) Value(value any) error { return p.encode(value) }

func (p Printer) encode(value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // commands contain < and &
	if p.Format == JSON && !p.Compact {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if p.Format != YAML {
		return p.write(string(terminal.EscapeJSON(b.Bytes())))
	}
	text, err := yaml.JSONToYAML(bytes.Map(visibleRune, b.Bytes()))
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if p.Compact {
		text = append([]byte("---\n"), text...)
	}
	return p.write(string(text))
}

// errNamespaces refuses names that are ambiguous.
var errNamespaces = errors.New("the objects that wait are in several namespaces, which names do not tell: add --namespace, or use --output json")

// names prints the objects whose deletion waits.
func (p Printer) names(reports []blocker.Report) error {
	var text strings.Builder
	namespace := ""
	for _, report := range reports {
		if report.Verdict < blocker.Waiting {
			continue
		}
		if of := report.Object.Namespace; of != "" {
			if namespace != "" && of != namespace {
				return errNamespaces
			}
			namespace = of
		}
		kind := strings.ToLower(report.Object.Kind)
		if report.Object.Group != "" {
			kind += "." + report.Object.Group
		}
		fmt.Fprintf(&text, "%s/%s\n", terminal.Printable(kind), terminal.Printable(report.Object.Name))
	}
	return p.write(text.String())
}

func (p Printer) write(text string) error {
	if _, err := io.WriteString(p.Out, text); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

// visibleRune returns the replacement character for what is not printable: YAML would print
// format characters as they are.
func visibleRune(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	return utf8.RuneError
}
