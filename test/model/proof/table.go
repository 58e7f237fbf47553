package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// world is the result of one configuration.
type world struct {
	states, depth int
	took          time.Duration
}

// results are the numbers of one run. Names that were used are in used.
type results struct {
	worlds  map[string]world
	bugs    map[string]int
	mutants map[string][4]int
	used    map[string]bool
	missing []string
}

var (
	worldLine  = regexp.MustCompile(`(?m)^\| (.+) \| (\d+) \| \d+ \| (\d+) \| \d+ \| \d+ \| (\S+) \|$`)
	bugLine    = regexp.MustCompile(`(?m)^found: (.+), by (\d+) states: `)
	mutantLine = regexp.MustCompile(`(?m)^(pkg/\S+): (\d+) killed by the model, (\d+) by unit tests, (\d+) survived, (\d+) not reached, (\d+) equivalent$`)
	footnotes  = regexp.MustCompile(` [¹²³]$`)
	separator  = regexp.MustCompile(`^\|[-|]+\|$`)
)

// beside has what the footnotes of a table of two programs stand for.
var beside = map[string]string{" ¹": " beside kube-controller-manager", " ²": " beside csi-provisioner"}

// read reads the output of make model.
func read(output string) *results {
	r := &results{worlds: map[string]world{}, bugs: map[string]int{}, mutants: map[string][4]int{}, used: map[string]bool{}}
	for _, m := range worldLine.FindAllStringSubmatch(output, -1) {
		took, _ := time.ParseDuration(m[4])
		r.worlds[m[1]] = world{states: number(m[2]), depth: number(m[3]), took: took}
	}
	for _, m := range bugLine.FindAllStringSubmatch(output, -1) {
		r.bugs[m[1]] = number(m[2])
	}
	for _, m := range mutantLine.FindAllStringSubmatch(output, -1) {
		r.mutants[m[1]] = [4]int{number(m[2]), number(m[3]), number(m[6]), number(m[4]) + number(m[5])}
	}
	return r
}

// number returns the number of a text that a regular expression has found.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// unused returns the worlds that no row has shown.
func (r *results) unused() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.worlds)), func(name string) bool { return r.used[name] })
}

// update returns the page with the numbers of the results.
func (r *results) update(page string) string {
	lines := strings.Split(page, "\n")
	var header []string
	for i, line := range lines {
		switch {
		case !strings.HasPrefix(line, "| "):
			if !separator.MatchString(line) {
				header = nil
			}
		case header == nil:
			header = cells(line)
		default:
			lines[i] = "| " + strings.Join(r.row(header, cells(line)), " | ") + " |"
		}
	}
	return strings.Join(lines, "\n")
}

func cells(line string) []string {
	return strings.Split(strings.Trim(line, "| "), " | ")
}

// row returns the cells of a row with the numbers of the results.
func (r *results) row(header, row []string) []string {
	kind := strings.Join(header, "|")
	switch {
	case strings.HasPrefix(kind, "world|no fault"):
		for i, fault := range header[1:] {
			name := nameOf(row[0])
			if fault != "no fault" {
				name += ", " + fault
			}
			row[i+1] = r.cell(name, row[i+1])
		}
	case kind == "world|states / way / seconds":
		row[1] = r.cell(nameOf(row[0]), row[1])
	case kind == "world|states|longest shortest way|seconds":
		if w, found := r.world(nameOf(row[0])); found {
			row = []string{row[0], thousands(w.states), strconv.Itoa(w.depth), seconds(w.took)}
		}
	case strings.HasPrefix(kind, "bug|in|broken rule"):
		if n, found := r.bugs[row[0]]; found {
			row[3] = thousands(n)
		}
	case strings.HasPrefix(kind, "package|killed by the model"):
		row = r.mutantsOf(row)
	}
	return row
}

// mutantsOf returns the row of a package, or of all.
func (r *results) mutantsOf(row []string) []string {
	counts, found := r.mutants[strings.Trim(row[0], "`")]
	form := "%d"
	if row[0] == "**all**" {
		form = "**%d**"
		for _, other := range r.mutants {
			for i, n := range other {
				counts[i] += n
			}
		}
	} else if !found {
		r.missing = append(r.missing, row[0])
		return row
	}
	for i, n := range counts {
		row[i+1] = fmt.Sprintf(form, n)
	}
	return row
}

// nameOf returns the name of the configuration of a row.
func nameOf(cell string) string {
	note := footnotes.FindString(cell)
	return strings.TrimSuffix(cell, note) + beside[note]
}

func (r *results) world(name string) (world, bool) {
	for _, known := range []string{name, strings.TrimSuffix(name, beside[" ²"])} {
		if w, found := r.worlds[known]; found {
			r.used[known] = true
			return w, true
		}
	}
	r.missing = append(r.missing, name)
	return world{}, false
}

// cell returns a cell with three numbers. The cell keeps its separator and its footnote.
func (r *results) cell(name, before string) string {
	w, found := r.world(name)
	if !found {
		return before
	}
	sep := cmp.Or(map[bool]string{true: " / "}[strings.Contains(before, " / ")], ", ")
	note := ""
	if strings.HasSuffix(before, " –") {
		note = " –"
	}
	return strings.Join([]string{thousands(w.states), strconv.Itoa(w.depth), seconds(w.took)}, sep) + note
}

// thousands returns the number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// seconds returns the time in seconds, with one decimal below ten.
func seconds(took time.Duration) string {
	if took < 10*time.Second {
		return strconv.FormatFloat(took.Seconds(), 'f', 1, 64)
	}
	return strconv.FormatFloat(took.Seconds(), 'f', 0, 64)
}
