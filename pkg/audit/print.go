package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// Formats are the values of --output; "" is a table.
var Formats = []string{"", "json", "yaml", "wide", "name"}

// widest are the numbers of characters in the columns of a table, -1 for any number.
var widest = []int{8, 25, 26, 6, 7}

// Print writes the report in one of [Formats].
func (r *Report) Print(out io.Writer, format string) error {
	switch format {
	case "json":
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("encode report: %w", err)
		}
		_, err = fmt.Fprintln(out, string(terminal.EscapeJSON(text)))
		return err
	case "yaml":
		text, err := yaml.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode report: %w", err)
		}
		_, err = out.Write(text)
		return err
	case "name":
		var text strings.Builder
		for _, orphan := range r.Orphans {
			fmt.Fprintln(&text, escape(orphan.Handle))
		}
		_, err := io.WriteString(out, text.String())
		return err
	}
	_, err := io.WriteString(out, r.text(format == "wide", terminal.WidthOf(out)))
	return err
}

// text returns head, findings and what could not be read.
func (r *Report) text(wide bool, columns int) string {
	var text strings.Builder
	paragraph := func(prefix, sentence string) { writeWrapped(&text, prefix, escape(sentence), wide, columns) }
	if question := r.Question(); question != "" {
		paragraph("", question)
	}
	paragraph("", fmt.Sprintf("Driver: %s", r.Driver))
	paragraph("", "Clusters read: "+strings.Join(r.Clusters, ", "))
	if !r.Enumerated {
		paragraph("", "The volumes were not all listed, so no orphan is named.")
	}
	for _, sentence := range r.Incomplete {
		paragraph("incomplete: ", sentence)
	}
	rows := r.rows()
	switch {
	case len(rows) == 0 && r.IsComplete():
		paragraph("", "Nothing found.")
		return text.String()
	case len(rows) == 0:
		paragraph("", "Nothing can be said: not everything could be read.")
		return text.String()
	}
	writeTable(&text, append([][]string{{"FINDING", "HANDLE", "NAME OR REASON", "AGE", "SIZE"}}, rows...), wide, columns)
	return text.String()
}

// rows returns a row for each finding.
func (r *Report) rows() [][]string {
	var rows [][]string
	for _, orphan := range r.Orphans {
		rows = append(rows, []string{"orphan", orphan.Handle, orphan.Name, orphan.Age, orphan.Size})
	}
	for _, doubt := range r.Doubtful {
		rows = append(rows, []string{"doubtful", doubt.Handle, doubt.Reason.String(), "", ""})
	}
	for _, ghost := range r.Ghosts {
		rows = append(rows, []string{"ghost", ghost.Handle, ghost.Name, "", ""})
	}
	for _, shared := range r.Shared {
		for _, volume := range shared.Volumes {
			name := volume.Name
			if len(r.Clusters) > 1 {
				name = volume.Cluster + "/" + name
			}
			rows = append(rows, []string{"shared", shared.Handle, name, "", ""})
		}
	}
	return rows
}

func writeTable(out *strings.Builder, rows [][]string, wide bool, columns int) {
	limits := terminal.Narrowed(widest, columns-len(widest)+1) // two spaces between columns
	widths := make([]int, len(widest))
	for _, row := range rows {
		for i := range row {
			row[i] = escape(row[i])
			if row[i] == "" {
				row[i] = "-"
			}
			if !wide {
				row[i] = shortened(row[i], limits[i])
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// shortened returns the text with its middle left out: handles differ at both ends.
func shortened(text string, length int) string {
	runes := []rune(text)
	if len(runes) <= length {
		return text
	}
	tail := (length - 1) / 2
	return string(runes[:length-1-tail]) + "…" + string(runes[len(runes)-tail:])
}

// writeWrapped writes the sentence, in lines of at most columns characters unless wide.
// A longer word stays whole, so that it can be copied.
func writeWrapped(out *strings.Builder, prefix, sentence string, wide bool, columns int) {
	line := prefix
	for i, word := range strings.Fields(sentence) {
		switch {
		case i == 0:
			line += word
		case !wide && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			out.WriteString(line + "\n")
			line = "  " + word
		default:
			line += " " + word
		}
	}
	out.WriteString(line + "\n")
}

// escape returns the text with characters that a terminal could act on written as escapes.
func escape(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
