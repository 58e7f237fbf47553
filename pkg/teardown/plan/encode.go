package plan

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/printer"
)

// encodedAtOnce is how many items are encoded at once: clusters have tens of thousands of volumes.
const encodedAtOnce = 100

// Encode writes the document as JSON or YAML.
func Encode(out io.Writer, document *teardown.Document, format string) error {
	e := encoder{format: printer.JSON, empty: "\n  \"items\": []", begin: "\n  \"items\": [", between: ",", end: "\n  ]"}
	if format == "yaml" {
		e = encoder{format: printer.YAML, empty: "\nitems: []\n", begin: "\nitems:\n"}
	}
	w := bufio.NewWriter(out)
	if err := e.encode(w, document); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print plan: %w", err)
	}
	return nil
}

// encoder writes a document without items, and the items where its empty list is. Texts cannot contain that: JSON has no
// line ends in them, and YAML indents them.
type encoder struct {
	format                     printer.Format
	empty, begin, between, end string
}

func (e encoder) encode(w *bufio.Writer, document *teardown.Document) error {
	frame := *document
	frame.Items = frame.Items[:0]
	text, err := e.text(frame)
	if err != nil {
		return err
	}
	before, after, hasItems := bytes.Cut(text, []byte(e.empty))
	if len(document.Items) == 0 || !hasItems {
		before, after = text, nil
	}
	_, _ = w.Write(before)
	first := e.begin
	for items := range slices.Chunk(document.Items, encodedAtOnce) {
		text, err := e.text(items)
		if err != nil {
			return err
		}
		if e.format == printer.JSON { // without its brackets, and deeper by one level
			text = bytes.ReplaceAll(text[1:len(text)-len("\n]\n")], []byte("\n"), []byte("\n  "))
		}
		_, _ = w.WriteString(first)
		_, _ = w.Write(text)
		first = e.between
	}
	if len(document.Items) > 0 {
		_, _ = w.WriteString(e.end)
	}
	_, _ = w.Write(after)
	return nil
}

// text returns the value as a document of its own.
func (e encoder) text(value any) ([]byte, error) {
	var b bytes.Buffer
	err := printer.Printer{Out: &b, Format: e.format}.Value(value)
	return b.Bytes(), err
}
