package report

import (
	"fmt"
	"strings"
)

// table is a Markdown table whose first column is text.
type table struct {
	head []string
	rows [][]string
}

// negligible is what number writes of a small value.
const negligible = "< 0.01"

// add appends a row. A row without any value that counts is left out.
func (t *table) add(cells ...string) {
	for _, cell := range cells[1:] {
		if cell != "" && cell != negligible {
			t.rows = append(t.rows, cells)
			return
		}
	}
}

// String returns the table and an empty line.
func (t *table) String() string {
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	text.WriteString("|---|" + strings.Repeat("---:|", len(t.head)-1) + "\n")
	for _, row := range t.rows {
		line(row)
	}
	return text.String() + "\n"
}

// number writes a value with about three digits, and "" for nothing.
func number(value float64) string {
	switch {
	case value == 0:
		return ""
	case value < 0.005:
		return negligible
	case value < 10:
		return fmt.Sprintf("%.2f", value)
	case value < 100:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.0f", value)
}

// ratio writes a divided by b, and "" if either is missing.
func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", a/b)
}
