package journalctl

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// Print writes the list in the format: "", "json" or "yaml".
func (l *EntryList) Print(out io.Writer, format string, now time.Time) error {
	switch format {
	case "json":
		text, err := json.MarshalIndent(l, "", "  ")
		if err != nil {
			return fmt.Errorf("encode entries: %w", err)
		}
		_, err = fmt.Fprintln(out, string(terminal.EscapeJSON(text)))
		return err
	case "yaml":
		text, err := yaml.Marshal(l)
		if err != nil {
			return fmt.Errorf("encode entries: %w", err)
		}
		_, err = out.Write(text)
		return err
	}
	return l.printTable(out, now)
}

func (l *EntryList) printTable(out io.Writer, now time.Time) error {
	if len(l.Items) == 0 {
		_, err := fmt.Fprintln(out, "No journal entries found.")
		return err
	}
	table := printers.GetNewTabWriter(out)
	fmt.Fprintln(table, "STATE\tDRIVER\tNODE\tCLAIM\tCLAIM UID\tVOLUME\tAGE\tREASON")
	for _, item := range l.Items {
		state, claim, age := string(item.State), "", ""
		if item.Finish {
			state += ", to be finished"
		}
		if item.Claim.Name != "" {
			claim = item.Claim.String()
		}
		if item.Since != nil {
			age = duration.HumanDuration(now.Sub(item.Since.Time))
		}
		cells := []string{state, item.Driver, item.Node, claim, string(item.ClaimUID), item.Volume, age, item.Reason}
		for i, cell := range cells {
			if cell == "" {
				cell = "-"
			}
			if i > 0 {
				fmt.Fprint(table, "\t")
			}
			fmt.Fprintf(table, "%s", terminal.Printable(cell))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
