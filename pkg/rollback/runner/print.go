package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/rollback"
)

// shown is the number of items of a step that the text output names.
const shown = 20

// Print writes the plan in the format: "", "json" or "yaml".
func (p *Plan) Print(out io.Writer, format string) error {
	var text []byte
	var err error
	switch format {
	case "json":
		if text, err = json.MarshalIndent(p, "", "  "); err == nil {
			text = append(terminal.EscapeJSON(text), '\n')
		}
	case "yaml":
		text, err = yaml.Marshal(p)
	default:
		text = p.text(terminal.WidthOf(out))
	}
	if err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// text returns the plan as lines that fit the columns, except for commands and names.
func (p *Plan) text(columns int) []byte {
	var text strings.Builder
	for _, step := range p.Steps {
		fmt.Fprintf(&text, "%d. %-7s  %s", step.Number, step.State, step.Title)
		if step.State == rollback.Pending && step.By == "exeunt" {
			text.WriteString("  (--confirm)")
		}
		text.WriteString("\n")
		step.writeDetails(&text, columns)
	}
	for _, sentence := range p.Incomplete {
		writeWrapped(&text, columns, "incomplete: "+sentence, "")
	}
	for _, sentence := range p.Unmatched {
		writeWrapped(&text, columns, sentence, "")
	}
	switch p.outcome {
	case rollback.NothingLeft:
		text.WriteString("Nothing is left to do.")
		if len(p.Steps) > 1 {
			text.WriteString(" The manifests of Exeunt can be uninstalled.")
		}
		text.WriteString("\n")
	case rollback.SomethingLeft:
		text.WriteString("Something is left to do: run this command again afterwards.\n")
	case rollback.DecisionNeeded:
		text.WriteString("You have to decide before this can be finished.\n")
	}
	return []byte(text.String())
}

// writeDetails writes what the step consists of, and what the administrator does.
func (s *Step) writeDetails(text *strings.Builder, columns int) {
	const indent = "     "
	for _, sentence := range s.Text {
		writeWrapped(text, columns, sentence, indent)
	}
	for _, command := range s.Commands {
		text.WriteString(indent + "  " + terminal.Printable(command) + "\n")
	}
	if s.By != "exeunt" {
		return
	}
	for i, item := range s.Items {
		if i == shown {
			fmt.Fprintf(text, "%sand %d more: see -o json\n", indent, len(s.Items)-shown)
			break
		}
		writeWrapped(text, columns, item.decision.Action.String()+": "+item.sentence(), indent)
	}
}

func writeWrapped(text *strings.Builder, columns int, sentence, indent string) {
	for i, line := range terminal.Wrap(terminal.Printable(sentence), columns-len(indent)-2) {
		if i > 0 {
			line = "  " + line
		}
		text.WriteString(indent + line + "\n")
	}
}
